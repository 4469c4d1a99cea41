"""The cost model's figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sidecar_core.experiments.svg import BLUE, VERMILION, Line, lines


def cost_figure(rows: Sequence[dict[str, Any]], measured: Sequence[dict[str, Any]] = ()) -> str:
    """Speed-up of a decode step by document masking against the batch; where this machine was
    measured, that and the model of it instead."""

    def points(found: Sequence[dict[str, Any]], key: str) -> tuple[tuple[float, float], ...]:
        return tuple((float(row["batch"]), float(row[key])) for row in found)

    drawn = [Line("modelled", points(rows, "speedup"), BLUE)]
    if measured:
        drawn = [
            Line("modelled", points(measured, "modelled_speedup"), BLUE, "6 5"),
            Line("measured here", points(measured, "speedup"), VERMILION),
        ]
    return lines("Speed-up of a decode step without the document", "batch", drawn)
