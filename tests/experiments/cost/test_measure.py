"""Measuring decode steps: what is measured, not how long it takes."""

from __future__ import annotations

import pytest
import torch

from sidecar_core.decoding.passes import forward
from sidecar_core.errors import SidecarError
from sidecar_core.experiments.cost import measure as measure_cost
from sidecar_core.experiments.cost.devices import footprint_of
from sidecar_core.experiments.cost.measure import (
    StepTimes,
    beside_model,
    filled,
    for_batch,
    measure,
    read_bandwidth,
)
from sidecar_core.experiments.cost.model import Lengths
from tests.tiny import tiny_model

MODEL = tiny_model()
LENGTHS = Lengths(full=100, masked=30)


def test_the_caches_without_the_document_are_really_smaller():
    full, masked = for_batch(filled(MODEL, LENGTHS), batch=3)
    column = footprint_of(MODEL).column
    assert (full.nbytes, masked.nbytes) == (3 * 100 * column, 3 * 30 * column)
    assert "document" not in dict(masked.segments)


def test_a_step_of_a_batch_is_the_step_of_each_request():
    single = filled(MODEL, LENGTHS)
    full, masked = for_batch(single, batch=2)
    for batch, alone in ((full, single.fork()), (masked, single.take("kept"))):
        both = forward(MODEL, batch, torch.tensor([[7], [9]]), 100, segment="tags")
        for row, token in enumerate([7, 9]):
            one = alone.fork()
            expected = forward(MODEL, one, [token], 100, segment="tags")
            assert torch.allclose(both[row], expected, atol=1e-5)


def test_every_batch_is_measured_at_the_same_length_in_turn(monkeypatch):
    seen: list[tuple[int, int]] = []
    real = measure_cost._step

    def watched(model, cache, batch, position) -> float:
        seen.append((batch, cache.length))
        return real(model, cache, batch, position)

    monkeypatch.setattr(measure_cost, "_step", watched)
    found = list(measure(MODEL, LENGTHS, batches=[1, 4], steps=2))
    assert [m.batch for m in found] == [1, 4]
    assert seen == [(1, 100), (1, 30)] * 3 + [(4, 100), (4, 30)] * 3
    assert all(m.full_seconds > 0 and m.masked_seconds > 0 for m in found)


def test_measured_steps_stand_beside_what_the_model_says():
    footprint = footprint_of(MODEL)
    bandwidth = 1e9
    row = beside_model(MODEL, LENGTHS, [StepTimes(2, 3.0, 2.0)], bandwidth)[0]
    assert row["speedup"] == 0.5
    modelled = (footprint.weights + 2 * 100 * footprint.column) / bandwidth
    assert row["modelled_full_seconds"] == pytest.approx(modelled)
    assert row["modelled_speedup"] > 0


def test_bandwidth_is_a_positive_number():
    assert read_bandwidth(torch.device("cpu"), tries=1) > 0


@pytest.mark.parametrize(
    ("lengths", "options"),
    [
        (LENGTHS, {"batches": []}),
        (LENGTHS, {"batches": [0]}),
        (LENGTHS, {"steps": 0}),
        (Lengths(full=5000, masked=30), {}),
        (Lengths(full=10, masked=0), {}),
    ],
)
def test_what_cannot_be_measured_is_refused(lengths, options):
    with pytest.raises(SidecarError):
        list(measure(MODEL, lengths, **options))
