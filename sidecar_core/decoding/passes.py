"""One forward pass: tokens at explicit positions, behind the columns of a cache."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

import torch

from sidecar_core.decoding.cache import SegmentedCache
from sidecar_core.errors import ModelFailed, OutOfMemory, SidecarError
from sidecar_core.models.kernels.kind import Kind, pass_kind
from sidecar_core.models.pair import LoadedModel

log = logging.getLogger(__name__)

NO_MEMORY = ("out of memory", "not enough memory", "allocate", "ALLOC_FAILED")
"""What the RuntimeErrors of torch's allocators say, on CPUs and elsewhere."""


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
    kind: Kind = "decode",
) -> torch.Tensor:
    """Run `ids` through the model; their columns are added to `cache` as part of `segment`.

    (Where they belong to several: (name, tokens) of each, in order.)

    `ids` are n token ids, or a tensor [batch, n]; they stand at positions `position` to
    `position + n - 1`, whatever the number of columns in the cache (or at the n given positions).
    Each sees all columns that are there and the new ones up to its own, or what `mask`, bool
    [1, 1, n, columns + n], lets it see. `kind` says what the pass is for (see `kernels`): "decode"
    computes each token as if it were alone, "read" is for prompts; one with a mask of its own is
    "masked". Returns float32 logits of the last `rows` tokens, [rows, vocabulary] or [batch, rows,
    vocabulary]; with `rows=0` the output matrix is not used at all. Raises OutOfMemory where memory
    runs out, and ModelFailed where the pass fails or its numbers are not finite: the cache is then
    as it was.
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
    if mask is not None:
        kind = "masked"
    elif count > 1:
        mask = causal_mask(count, past, device)
    inputs = {"input_ids": tokens, "position_ids": places[None], "attention_mask": mask}
    try:
        with pass_kind(kind):
            numbers = _numbers(model, cache, inputs, rows)
    except SidecarError:
        cache.drop_undeclared()
        raise
    for name, columns in [(segment, count)] if isinstance(segment, str) else segment:
        cache.declare(name, columns)
    if not rows:
        return torch.empty(0)
    return numbers if batched else numbers[0]


def _numbers(
    model: LoadedModel, cache: SegmentedCache, inputs: dict[str, Any], rows: int
) -> torch.Tensor:
    """Logits [batch, rows, vocabulary], or hidden states [batch, n, width] where `rows` is 0; known
    to be finite. Raises as `forward` does, and may leave columns in the cache."""
    network = model.network if rows else model.network.base_model
    options = {"logits_to_keep": rows} if rows else {}
    try:
        output = network(**inputs, cache=cache, use_cache=True, **options)
        numbers: torch.Tensor = output.logits.float() if rows else output.last_hidden_state
    except Exception as error:
        if is_out_of_memory(error):
            raise OutOfMemory(
                f"Out of memory while {model.name} read "
                f"{cache.length + inputs['input_ids'].shape[1]} tokens; "
                "use a shorter article or a smaller pair."
            ) from error
        log.error("%s failed in its forward pass", model.name, exc_info=error)
        raise ModelFailed(
            f"{model.name} failed in its forward pass ({type(error).__name__}). "
            "Another run may work."
        ) from error
    _check_finite(model, numbers)
    return numbers


def _check_finite(model: LoadedModel, numbers: torch.Tensor) -> None:
    """One sum, which no infinite or NaN survives: a fiftieth of what asking for each one costs."""
    if math.isfinite(float(numbers.sum(dtype=torch.float32))):
        return
    advice = "try another precision (--precision fp32)"
    if model.precision == "fp32":
        advice = "the weights may be damaged; fetch them again"
    raise ModelFailed(f"{model.name} produced NaN or infinity in {model.precision}; {advice}.")


def is_out_of_memory(error: Exception) -> bool:
    """Whether this is how torch or Python says that memory ran out."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in NO_MEMORY)
