"""Attention whose rows do not depend on each other, and which shares key/value heads cheaply.

With a mask and several rows, transformers' sdpa copies keys and values once per query head, and
what it computes for a row changes, in the last digits, with the other rows. Here keys and values
are read where they lie. In a decoding pass (see `kernels`) each row is taken by itself, over just
the columns that it attends to, the query heads of one key/value head being the rows of one small
attention. A prompt is read in blocks of `BLOCK` rows that begin at multiples of `BLOCK` columns, so
that its columns do not depend on where its chunks begin.

Equal to sdpa up to rounding (4e-7 in fp32). Milliseconds for one layer of the 1.5B model (12 query
heads, 2 key/value heads of 128, fp32, two cores), against one masked call: 5 rows behind 700
columns 0.35 : 0.27, 9 rows 0.8 : 0.5, 1 row the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, AttentionMaskInterface
from transformers.modeling_utils import AttentionInterface

from sidecar_core.models.kernels.kind import BLOCK, kind_of_pass

NAME = "sidecar_sdpa"


def steady_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attention as transformers calls it.

    `query` is [batch, heads, rows, dim], `key` and `value` [batch, key/value heads, columns, dim],
    the mask [batch or 1, 1 or heads, rows, columns], bool (True = attend) or additive; the result
    is [batch, rows, heads, dim]. In a decoding pass and in one that reads a prompt each row attends
    to all columns up to its own, whatever the mask says. What is not plain attention goes to
    transformers' sdpa.
    """
    rows, kind = query.shape[2], kind_of_pass()
    special = dropout or any(kwargs.get(name) is not None for name in ("position_bias", "softcap"))
    if special or (kind != "decode" and (query.device.type != "cpu" or attention_mask is None)):
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout, scaling, **kwargs
        )
    past = key.shape[2] - rows
    if kind == "decode":
        parts = [_row(query, key, value, row, past, scaling) for row in range(rows)]
    else:
        edges = _edges(past, rows) if kind == "read" else iter([(0, rows)])
        assert attention_mask is not None
        parts = [
            scaled_dot_product_attention(
                query[:, :, start:end],
                key[:, :, : past + end],
                value[:, :, : past + end],
                attn_mask=attention_mask[:, :, start:end, : past + end],
                scale=scaling,
                enable_gqa=query.shape[1] != key.shape[1],
            )
            for start, end in edges
        ]
    result = parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)
    return result.transpose(1, 2).contiguous(), None


def _row(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    row: int,
    past: int,
    scaling: float | None,
) -> torch.Tensor:
    """One row's result, [batch, heads, 1, dim]: the query heads of a key/value head as rows."""
    batch, heads, _, dim = query.shape
    columns = past + row + 1
    return scaled_dot_product_attention(
        query[:, :, row].reshape(batch, key.shape[1], -1, dim),
        key[:, :, :columns],
        value[:, :, :columns],
        scale=scaling,
    ).reshape(batch, heads, 1, -1)


def _edges(past: int, rows: int) -> Iterator[tuple[int, int]]:
    """(start, end) of the blocks of new rows: a block ends where a multiple of `BLOCK` columns is
    full."""
    start = 0
    while start < rows:
        end = min(rows, start + BLOCK - (past + start) % BLOCK)
        yield start, end
        start = end


def register() -> str:
    """Makes the function known to transformers and returns its name; more than once is fine."""
    AttentionInterface.register(NAME, steady_attention)
    AttentionMaskInterface.register(NAME, ALL_MASK_ATTENTION_FUNCTIONS["sdpa"])
    return NAME
