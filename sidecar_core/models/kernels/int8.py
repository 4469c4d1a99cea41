"""Linear layers with int8 weights, on a CPU, by one of two kernels.

- "integer": activations are rounded to 16 bits, whose two bytes are two rows of int8; the products
  and sums are integers (`_int_mm`: oneDNN, the processor's integer units), so nothing is rounded
  until the end. Twice the rows cost little: what takes time is reading the weights, once a pass.
- "packed": activations are rounded to bf16 and sums are fp32 (`_weight_int8pack_mm`); a prompt is
  read with the weights widened block by block, in bf16 or fp32.

Milliseconds for one layer of 1536 → 8960, weights out of cache, two cores of a machine with VNNI
and AMX, by rows (best of 24):

    rows             1      2      4      5      8     64
    integer        1.5    1.6    1.5    1.6    1.8    4.5
    packed         1.4    1.6    2.0    2.8    3.0     33 (12 widened)

Without integer units "integer" is slow, or the library adds in 16 bits, which overflow: so
`calibration` times both on the machine at hand, and `integers_are_exact` looks.

What is computed for a row does not depend on the other rows, with either.
"""

from __future__ import annotations

import functools
import sys
import weakref
from contextvars import ContextVar
from typing import Literal

import torch
from torch import nn
from torch.nn import functional as F

from sidecar_core.models.kernels.kind import decodes
from sidecar_core.models.kernels.linear import steady_rows

Kernel = Literal["integer", "packed"]

TOP = 127 * 256
"""Activations are whole numbers up to this; their two bytes are then whole numbers up to 127."""

TINY = 1e-30
"""The least step: a row of zeros has one too."""

BLOCK_BYTES = 1 << 24
"""Size of a widened block of weights: small enough to be reused by the allocator, large enough that
threads seldom wait for each other."""


def has_bf16_units() -> bool:
    """Whether this CPU multiplies bf16 in hardware; without that, bf16 is emulated and slow."""
    probe = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return bool(probe and probe())


@functools.cache
def integers_are_exact() -> bool:
    """Whether integer products come out right here, at the largest numbers that can occur, and
    bytes lie as `_halves` takes them."""
    if sys.byteorder != "little":
        return False
    for rows in (2, 10, 64):
        signs = torch.randint(0, 2, (rows + 48, 192), generator=torch.Generator().manual_seed(rows))
        numbers = (signs * 2 - 1) * 127
        numbers[0], numbers[-1] = 127, -128  # sums of the same sign throughout
        x, weight = numbers[:rows], numbers[rows:]
        found = torch._int_mm(x.to(torch.int8), weight.to(torch.int8).T)
        if not torch.equal(found.double(), x.double() @ weight.double().T):
            return False
    return True


_last: ContextVar[tuple[weakref.ref[torch.Tensor], tuple[torch.Tensor, torch.Tensor]] | None] = (
    ContextVar("the last activations of this thread, and their halves", default=None)
)


def _halves(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Activations fp32 [..., in] as integers: (int8 [2n, in], step [n, 1]).

    A row is step · (256 · high + low); the first n rows are the high halves. Query, key and value
    are made from one x, and so are gate and up, so those of the last x are kept.
    """
    kept = _last.get()
    if kept is not None and kept[0]() is x:
        return kept[1]
    rows = x.reshape(-1, x.shape[-1])
    step = rows.abs().amax(1, keepdim=True).div_(TOP).clamp_min_(TINY)
    # The last bytes of such a sum are those of the whole number: rounding, in two quick steps.
    whole = (rows / step).add_(1.5 * 2**23)
    low, high = whole.view(torch.int8)[:, ::4], (whole + 128).view(torch.int8)[:, 1::4]
    found = torch.cat([high, low]), step
    _last.set((weakref.ref(x), found))
    return found


class Int8Linear(nn.Module):
    """Weights as int8 with one scale per output channel.

    `weight` is int8 [out, in], `scale` bf16 [out], `bias` fp32 [out] or None. `kernel` says how it
    multiplies; with "packed", decoding passes differ from those that read a prompt in rounding.
    """

    weight: torch.Tensor
    scale: torch.Tensor
    bias: torch.Tensor | None

    def __init__(self, in_features: int, out_features: int, bias: bool) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.register_buffer("weight", torch.empty(out_features, in_features, dtype=torch.int8))
        self.register_buffer("scale", torch.empty(out_features, dtype=torch.bfloat16))
        self.register_buffer("bias", torch.empty(out_features) if bias else None)
        self.kernel: Kernel = "integer" if integers_are_exact() else "packed"
        self.wide = torch.bfloat16 if has_bf16_units() else torch.float32

    @classmethod
    def of(cls, linear: nn.Linear) -> Int8Linear:
        """The same layer with its weights rounded to int8."""
        made = cls(linear.in_features, linear.out_features, linear.bias is not None)
        weight = linear.weight.detach().float()
        # The scale is what bf16 can hold, so that nothing is lost after the rounding to int8.
        scale = (weight.abs().amax(dim=1) / 127).clamp_min(1e-12).bfloat16()
        made.scale = scale
        made.weight = (weight / scale.float()[:, None]).round().to(torch.int8)
        if linear.bias is not None:
            made.bias = linear.bias.detach().float()
        return made

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """fp32 [..., in] → fp32 [..., out]."""
        rows = x.reshape(-1, self.in_features)
        if self.kernel == "integer":
            y = self._integer(x)
        elif decodes():  # rows in memory of their own: the kernel needs it aligned
            y = torch._weight_int8pack_mm(rows.to(torch.bfloat16), self.weight, self.scale).float()
        else:
            y = self._widened(rows.to(torch.bfloat16).to(self.wide))
        if self.bias is not None:
            y += self.bias
        return y.reshape(*x.shape[:-1], self.out_features)

    def _integer(self, x: torch.Tensor) -> torch.Tensor:
        halves, step = _halves(x)
        sums = torch._int_mm(halves, self.weight.T).float()
        count = len(step)
        y = torch.add(sums[count:], sums[:count], alpha=256)
        return y.mul_(step).mul_(self.scale.float())

    def _widened(self, rows: torch.Tensor) -> torch.Tensor:
        y = torch.empty(len(rows), self.out_features)
        step = max(1, BLOCK_BYTES // (self.in_features * rows.element_size()))
        for start in range(0, self.out_features, step):
            block = self.weight[start : start + step].to(rows.dtype)
            y[:, start : start + step] = steady_rows(rows, block)
        return y.mul_(self.scale.float())


class HalfEmbedding(nn.Module):
    """An embedding kept in bf16 that gives fp32, so that all behind it is computed in fp32."""

    weight: torch.Tensor

    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.empty(count, width, dtype=torch.bfloat16))

    @classmethod
    def of(cls, embedding: nn.Embedding) -> HalfEmbedding:
        made = cls(*embedding.weight.shape)
        made.weight = embedding.weight.detach().bfloat16()
        return made

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """ids [...] → fp32 [..., width]."""
        return F.embedding(ids, self.weight).float()


def quantize(network: nn.Module, *, empty: bool = False) -> None:
    """Replace every linear layer by its int8 form and the embedding by bf16, in place.

    With `empty`, by layers of that form whose values are still to be loaded.
    """
    for name, module in list(network.named_modules()):
        parent, _, child = name.rpartition(".")
        owner = network.get_submodule(parent)
        if isinstance(module, nn.Linear):
            shape = module.in_features, module.out_features, module.bias is not None
            setattr(owner, child, Int8Linear(*shape) if empty else Int8Linear.of(module))
        elif isinstance(module, nn.Embedding):
            size = module.num_embeddings, module.embedding_dim
            setattr(owner, child, HalfEmbedding(*size) if empty else HalfEmbedding.of(module))


def kernels(network: nn.Module) -> tuple[Kernel, ...]:
    """The kernels that `network` can take here: none where it holds no int8 weights."""
    if not any(isinstance(module, Int8Linear) for module in network.modules()):
        return ()
    return ("integer", "packed") if integers_are_exact() else ("packed",)


def use_kernel(network: nn.Module, kernel: Kernel) -> None:
    """Let every int8 layer of `network` multiply by `kernel`, in place."""
    for module in network.modules():
        if isinstance(module, Int8Linear):
            module.kernel = kernel
