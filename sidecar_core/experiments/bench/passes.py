"""How long a decoding pass takes by its number of rows: what speculation lives on.

A verification of γ drafted tokens is a pass of γ + 1 rows. Where that costs as much as a pass of
one row, drafting pays as soon as the draft is cheap; where it costs γ + 1 times as much, never.
"""

from __future__ import annotations

import statistics
from typing import Any

from sidecar_core.models.kernels.calibration import PAST, ROWS, time_passes
from sidecar_core.models.pair import LoadedModel, Pair


def measure_passes(pair: Pair, sweeps: int) -> dict[str, Any]:
    """Median milliseconds of target and draft by rows, over so many sweeps in turn, and the bytes
    of weights that a pass reads at most."""
    models = {"target": pair.target, "draft": pair.draft}
    found = {role: _milliseconds(model, sweeps) for role, model in models.items()}
    return {
        "past_tokens": PAST,
        "rows": list(ROWS),
        "milliseconds": found,
        "weight_bytes": {role: model.weight_bytes for role, model in models.items()},
        "kernel": {role: model.calibration.kernel for role, model in models.items()},
    }


def _milliseconds(model: LoadedModel, sweeps: int) -> list[float]:
    timed = time_passes(model.network, model.device, sweeps)
    return [1e3 * statistics.median(column) for column in zip(*timed, strict=True)]


def table(result: dict[str, Any]) -> str:
    """The times as text, a model a line, and what they are to a pass over one row."""
    rows: list[int] = result["rows"]
    lines = ["rows".ljust(10) + "".join(f"{n:>14}" for n in rows)]
    for role, times in result["milliseconds"].items():
        cells = [f"{ms:.0f} ms {ms / times[0]:5.2f}" for ms in times]
        lines.append(role.ljust(10) + "".join(f"{cell:>14}" for cell in cells))
    return "\n".join(lines)
