"""Linear layers in fp32 and bf16: rows that do not depend on each other, few rows fast on a CPU.

Decoding multiplies by one row, verification by γ + 1, and memory bandwidth sets the pace of both.
Milliseconds (best of 12 to 16) for one layer of 1536 → 8960 on two cores, by rows, weights out of
cache, on an AVX-512 machine with bf16 units:

    rows                                   1      2      4      5      8     64    256
    fp32 `F.linear`                      3.3    6.6    8.0    6.9    8.7     43    104
    fp32 `(W @ x.T).T`                   3.3    3.1    6.7    8.6    7.7     28     85
    fp32 oneDNN, weights as they lie     2.0    2.3    2.7    3.5    4.7     24      –
    bf16 `F.linear`                      2.7    3.7      –    2.8    3.4      8     35

(a machine with AVX2 alone shows the same order for fp32, and bf16 five times slower). So fp32 goes
through oneDNN, which `F.linear` leaves out in favour of a BLAS that is slow for few rows. For int8
see `int8`.

What is computed for a row must not depend on the other rows of the pass (see `kernels`). oneDNN's
matrix product takes each row by itself, but takes another kernel for a single row, so a single row
is given company (`MIN_ROWS`). Elsewhere than on a CPU the rows of a decoding pass are multiplied in
blocks of a fixed size.
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


def steady(network: nn.Module) -> None:
    """Make the rows of every linear layer independent of each other, and fast if they are few; in
    place, the weights stay where they are."""
    for module in network.modules():
        if type(module) is nn.Linear:
            module.__class__ = SteadyLinear
