"""Linear layers: rows that do not depend on each other, few rows fast on a CPU, int8 weights.

Decoding multiplies by one row, verification by γ + 1, and memory bandwidth sets the pace of both.
Milliseconds (best of 12 to 16) for one layer of 1536 → 8960 on two cores, by rows, weights out of
cache, on an AVX-512 machine with bf16 units:

    rows                                   1      2      4      5      8     64    256
    fp32 `F.linear`                      3.3    6.6    8.0    6.9    8.7     43    104
    fp32 `(W @ x.T).T`                   3.3    3.1    6.7    8.6    7.7     28     85
    fp32 oneDNN, weights as they lie     2.0    2.3    2.7    3.5    4.7     24      –
    bf16 `F.linear`                      2.7    3.7      –    2.8    3.4      8     35
    int8 `_weight_int8pack_mm`           1.0    0.9    1.1    1.5    2.2     33      –
    int8 widened to bf16, then bf16      4.8    4.3      –    5.0    5.5     12     39
    torchao 0.18 int8 weight-only, bf16  2.9      –      –    3.0      –     15      –

(a machine with AVX2 alone shows the same order for fp32 and int8, and bf16 five times slower). So:
fp32 goes through oneDNN, which `F.linear` leaves out in favour of a BLAS that is slow for few rows;
int8 through the packed kernel while decoding, and is widened block by block to read a prompt.

What is computed for a row must not depend on the other rows of the pass (see `kernels`). The packed
int8 kernel takes each row by itself. oneDNN's matrix product does so too, but takes another kernel
for a single row, so a single row is given company (`MIN_ROWS`). Elsewhere than on a CPU the rows of
a decoding pass are multiplied in blocks of a fixed size.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from sidecar_core.models.kernels.kind import decodes

MIN_ROWS = 2
"""A matrix product of fewer rows is another kernel, whose sums are rounded otherwise."""

DEVICE_BLOCK = 16
"""Rows of a decoding pass that are multiplied at a time where there is no CPU: with one shape, one
kernel."""

BLOCK_BYTES = 1 << 24
"""Size of a widened block of weights: small enough to be reused by the allocator, large enough that
threads seldom wait for each other."""


def has_bf16_units() -> bool:
    """Whether this CPU multiplies bf16 in hardware; without that, bf16 is emulated and slow."""
    probe = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return bool(probe and probe())


def linear_fp32(
    rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """`F.linear` of fp32 rows [n, in] and weights [out, in] by oneDNN, where torch has it."""
    if torch.backends.mkldnn.is_available():
        return torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
    return F.linear(rows, weight, bias)


def steady_rows(
    rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """`F.linear` of rows [n, in] and weights [out, in], each row as if it were the only one."""
    if rows.device.type != "cpu":
        if not decodes():
            return F.linear(rows, weight, bias)
        blocks = [_filled(block, DEVICE_BLOCK) for block in rows.split(DEVICE_BLOCK)]
        return torch.cat([F.linear(block, weight, bias) for block in blocks])[: len(rows)]
    multiply = linear_fp32 if rows.dtype == torch.float32 else F.linear
    return multiply(_filled(rows, MIN_ROWS), weight, bias)[: len(rows)]


def _filled(rows: torch.Tensor, count: int) -> torch.Tensor:
    """The rows, and rows of zeros behind them where there are fewer than `count`."""
    lacking = count - len(rows)
    return F.pad(rows, (0, 0, 0, lacking)) if lacking > 0 else rows


class SteadyLinear(nn.Linear):
    """`nn.Linear` whose rows do not depend on each other; equal to it up to rounding. In fp32 on a
    CPU it does not slow down at 2 rows either."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[..., in] → [..., out]."""
        y = steady_rows(x.reshape(-1, self.in_features), self.weight, self.bias)
        return y.reshape(*x.shape[:-1], self.out_features)


class Int8Linear(nn.Module):
    """Weights as int8 with one scale per output channel; activations are not quantised.

    `weight` is int8 [out, in], `scale` bf16 [out], `bias` fp32 [out] or None. Activations are
    rounded to bf16 (in memory of their own: the kernel needs it aligned), sums are fp32, and what
    is computed for a row does not depend on the other rows. Decoding passes and passes that read a
    prompt take kernels that differ in rounding.
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
        rows = x.reshape(-1, self.in_features).to(torch.bfloat16)
        if decodes():
            y = torch._weight_int8pack_mm(rows, self.weight, self.scale).float()
        else:
            y = self._widened(rows.to(self.wide))
        if self.bias is not None:
            y += self.bias
        return y.reshape(*x.shape[:-1], self.out_features)

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


def steady(network: nn.Module) -> None:
    """Make the rows of every linear layer independent of each other, and fast if they are few; in
    place, the weights stay where they are."""
    for module in network.modules():
        if type(module) is nn.Linear:
            module.__class__ = SteadyLinear


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
