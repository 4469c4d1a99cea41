"""How many runs fit beside each other on the device of a pair.

On a CPU runs would only take each other's cores, so it is one. On a GPU a run takes the KV caches
of the longest article that is allowed, with room to grow, and what a pass needs besides.
"""

from __future__ import annotations

import torch

from sidecar_core.models.pair import LoadedModel, Pair
from sidecar_core.settings import MAX_ARTICLE_TOKENS, RANGES

MOST = 4
"""More at a time would only make each of them slow."""

TOKENS = MAX_ARTICLE_TOKENS + int(RANGES["max_tokens"].high) + 512
"""Columns of a long run: article, summary, and the prompt's frame, suffix and tags."""

GROWTH = 1.5
"""Buffers of a cache grow by half."""

DRAFT_CACHES = 3
"""The draft's own, and the copies from which the sidecar's is composed. In the α lab: the
article's, the unrelated text's, and each condition's own columns. The leak test holds one more,
and none of the target's."""

WORKSPACE = 1 << 29
"""Bytes of a run's logits, masks and activations."""


def runs_at_once(pair: Pair, kept: int) -> int:
    """Runs that fit into the free memory, beside `kept` bytes of stored prefixes; at least one."""
    device = pair.target.device
    if device.type != "cuda":
        return 1
    free, _ = torch.cuda.mem_get_info(device)
    return fitting(free - kept, run_bytes(pair))


def run_bytes(pair: Pair) -> int:
    """Bytes that a long run takes at most."""
    columns = column_bytes(pair.target) + DRAFT_CACHES * column_bytes(pair.draft)
    return int(GROWTH * TOKENS * columns) + WORKSPACE


def column_bytes(model: LoadedModel) -> int:
    """Bytes of one token's keys and values over all layers."""
    config = model.network.config.get_text_config()
    heads = config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    kept = getattr(config, "num_key_value_heads", None) or heads
    return int(2 * config.num_hidden_layers * kept * size * model.network.dtype.itemsize)


def fitting(free: int, each: int) -> int:
    """How many of `each` bytes `free` bytes hold, from 1 to MOST."""
    return max(1, min(MOST, free // each))
