"""Decode steps timed on this machine, with the document's columns in the caches and without.

Every request of a batch has a cache of its own, as requests of different articles do; without the
document it is really smaller. What the tokens are does not matter for time, so that any will do.
Steps with and without the document take turns, and the median counts: machines are noisy, and what
disturbs one side disturbs the other.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from sidecar_core.decoding.cache import SegmentedCache
from sidecar_core.decoding.passes import forward
from sidecar_core.decoding.prefix import prefill
from sidecar_core.errors import SidecarError
from sidecar_core.experiments.cost.devices import Device, footprint_of
from sidecar_core.experiments.cost.model import CostSetup, Lengths, rows
from sidecar_core.models.pair import LoadedModel
from sidecar_core.prompts import Segment

BATCHES = (1, 2, 4, 8, 16, 32, 64)
STEPS = 7

_READ_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class Measured:
    """Median seconds of one decode step of `batch` requests."""

    batch: int
    full_seconds: float
    masked_seconds: float

    @property
    def speedup(self) -> float:
        return self.full_seconds / self.masked_seconds - 1


def measure(
    model: LoadedModel, lengths: Lengths, batches: Sequence[int] = BATCHES, steps: int = STEPS
) -> Iterator[Measured]:
    """Yields one Measured for each batch size.

    Raises SidecarError for numbers out of range, and where memory runs out.
    """
    lengths.validate()
    if not batches or not all(1 <= batch <= 1024 for batch in batches):
        raise SidecarError("Batch sizes to be measured must be whole numbers from 1 to 1,024.")
    if not 1 <= steps <= 1000:
        raise SidecarError(f"The number of steps is {steps}; it must be from 1 to 1,000.")
    if not 0 < lengths.masked <= lengths.full < model.max_positions - steps:
        raise SidecarError(
            f"{lengths.full:,} cached tokens cannot be measured; the model has room for "
            f"{model.max_positions:,}."
        )
    single = filled(model, lengths)
    for batch in batches:
        full, masked = for_batch(single, batch)
        times: dict[str, list[float]] = {"full": [], "masked": []}
        for step in range(steps + 1):
            for name, cache in (("full", full), ("masked", masked)):
                seconds = _step(model, cache, batch, lengths.full)
                if step:  # the first one warms up
                    times[name].append(seconds)
        yield Measured(batch, *(statistics.median(times[name]) for name in ("full", "masked")))


def filled(model: LoadedModel, lengths: Lengths) -> SegmentedCache:
    """One request's cache: the columns that masking leaves, then the document's."""
    cache = SegmentedCache()
    tokens = torch.arange(lengths.full) % model.vocab_size
    ids = tuple(tokens.tolist())
    kept, document = ids[: lengths.masked], ids[lengths.masked :]
    for _ in prefill(model, cache, [Segment("kept", kept), Segment("document", document)], 0):
        pass
    return cache


def for_batch(single: SegmentedCache, batch: int) -> tuple[SegmentedCache, SegmentedCache]:
    """Caches of a batch, [batch, …]: with the document, and without it."""
    try:
        return single.repeat(batch), single.take("kept").repeat(batch)
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise SidecarError(
            f"There is no memory for the caches of a batch of {batch}; measure smaller ones."
        ) from error


def _step(model: LoadedModel, cache: SegmentedCache, batch: int, position: int) -> float:
    """Seconds of one decode step, whose columns are forgotten again."""
    length = cache.length
    tokens = torch.ones(batch, 1, dtype=torch.long)
    _finish(model.device)
    start = time.perf_counter()
    forward(model, cache, tokens, position, segment="tags")
    _finish(model.device)
    seconds = time.perf_counter() - start
    cache.rollback(length)
    return seconds


def _finish(device: torch.device) -> None:
    """Wait until the device has done what it was asked."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def read_bandwidth(device: torch.device, tries: int = 5) -> float:
    """Bytes a second at which this device reads memory in one go: the best of `tries` sums over a
    quarter of a gigabyte."""
    data = torch.ones(_READ_BYTES // 4, device=device)
    best = float("inf")
    for _ in range(tries + 1):
        _finish(device)
        start = time.perf_counter()
        data.sum()
        _finish(device)
        best = min(best, time.perf_counter() - start)
    return data.nbytes / best


def beside_model(
    model: LoadedModel, lengths: Lengths, measured: Sequence[Measured], bandwidth: float
) -> list[dict[str, Any]]:
    """Measured steps, and what the cost model says for a machine of that bandwidth."""
    here = Device("this machine", bandwidth, 1.0, 0.0, "measured")
    scenario = CostSetup(footprint_of(model), here, lengths)
    return [
        {
            "batch": m.batch,
            "full_seconds": m.full_seconds,
            "masked_seconds": m.masked_seconds,
            "speedup": m.speedup,
            "modelled_full_seconds": row.full_seconds,
            "modelled_masked_seconds": row.masked_seconds,
            "modelled_speedup": row.speedup,
        }
        for m, row in zip(measured, rows(scenario, [m.batch for m in measured]), strict=True)
    ]
