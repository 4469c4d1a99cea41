"""One forward pass: tokens at explicit positions, behind the columns of a cache."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from sidecar_core.decoding.cache import SegmentedCache
from sidecar_core.errors import SidecarError
from sidecar_core.models.pair import LoadedModel


def causal_mask(rows: int, past: int, device: torch.device) -> torch.Tensor:
    """Bool mask [1, 1, rows, past + rows], True = attend: all of the past, then causal."""
    return torch.ones(rows, past + rows, dtype=torch.bool, device=device).tril(past)[None, None]


@torch.inference_mode()
def forward(
    model: LoadedModel,
    cache: SegmentedCache,
    ids: Sequence[int] | torch.Tensor,
    position: int | Sequence[int],
    *,
    segment: str | Sequence[tuple[str, int]],
    rows: int = 1,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """Run `ids` through the model; their columns are added to `cache` as part of `segment`.

    (Where they belong to several: (name, tokens) of each, in order.)

    `ids` are n token ids, or a tensor [batch, n]; they stand at positions `position` to
    `position + n - 1`, whatever the number of columns in the cache (or at the n given positions).
    Each sees all columns that are there and the new ones up to its own, or what `mask`, bool
    [1, 1, n, columns + n], lets it see. Returns float32 logits of the last `rows` tokens,
    [rows, vocabulary] or [batch, rows, vocabulary]; with `rows=0` the output matrix is not used at
    all. Raises SidecarError where memory runs out or the model returns no numbers.
    """
    device = model.device
    tokens = torch.as_tensor(ids, dtype=torch.long, device=device)
    batched = tokens.dim() == 2
    tokens = tokens if batched else tokens[None]
    count, past = tokens.shape[1], cache.length
    if isinstance(position, int):
        places = torch.arange(position, position + count, device=device)
    else:
        places = torch.tensor(position, device=device)
    if mask is None and count > 1:
        mask = causal_mask(count, past, device)
    network = model.network if rows else model.network.base_model
    try:
        output = network(
            input_ids=tokens,
            position_ids=places[None],
            attention_mask=mask,
            cache=cache,
            use_cache=True,
            **({"logits_to_keep": rows} if rows else {}),
        )
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise _out_of_memory(model, past + count) from error
    except RuntimeError as error:
        if "memory" not in str(error):
            raise
        raise _out_of_memory(model, past + count) from error
    for name, columns in [(segment, count)] if isinstance(segment, str) else segment:
        cache.declare(name, columns)
    if not rows:
        return torch.empty(0)
    logits = output.logits.float()
    if not torch.isfinite(logits).all():
        raise SidecarError(
            f"{model.name} returned numbers that are not finite in {model.precision}; "
            "try another precision (--precision fp32)."
        )
    return logits if batched else logits[0]


def _out_of_memory(model: LoadedModel, tokens: int) -> SidecarError:
    return SidecarError(
        f"Out of memory while {model.name} read {tokens} tokens; "
        "use a shorter article or a smaller pair."
    )
