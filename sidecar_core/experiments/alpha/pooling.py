"""Results of many articles in one: the JSON object of `alpha`.

α is pooled over positions (long summaries count more), every interval is one over documents
(`stats`), and every difference is paired: all conditions are measured on the same documents.

    position cost = identical - masked      what the shifted positions cost
    content leak  = masked - visible        what reading the suffix costs beyond that
    tail leak     = masked - leaky-tail     the part of it that comes through the chat tail alone
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sidecar_core.decoding.draft_length import expected_tokens
from sidecar_core.experiments.alpha.blocks import replayed
from sidecar_core.experiments.readings import DocumentAlpha
from sidecar_core.experiments.stats import Array, interval, left_out, pooled
from sidecar_core.report import ratio

BASELINE = "identical"

PARTS = {
    "position_cost": ("identical", "masked"),
    "content_leak": ("masked", "visible"),
    "tail_leak": ("masked", "leaky-tail"),
}

DEPTHS = (0, 8, 16, 32, 64, 128)
"""Where the bands of positions in the summary begin; the last one has no end."""


def pool(results: Sequence[DocumentAlpha], *, gamma: int, max_tokens: int) -> dict[str, Any]:
    """The fixed keys `conditions` and `per_document`, and what else the measurement says.

    `gamma` drafts a round are assumed for tokens per pass. Without results there is nothing in it.
    """
    if not results:
        return {"documents": 0, "gamma": gamma, "conditions": {}, "per_document": []}
    table = Table(results)
    blocks = {
        name: replayed((r.readings[name] for r in results), gamma, max_tokens)
        for name in table.names
    }
    conditions = {}
    for name in table.names:
        alpha = table.alpha(name)
        agreed = sum(sum(r.readings[name].agreed) for r in results)
        agreement = agreed / table.positions
        conditions[name] = {
            "alpha": alpha,
            "positions": table.positions,
            "documents": len(results),
            "ci95": table.interval(name),
            "agreement": agreement,
            "expected_tokens_per_pass": expected_tokens(alpha, gamma),
            "greedy": {
                "expected_tokens_per_pass": expected_tokens(agreement, gamma),
                "tokens_per_pass": blocks[name].tokens_per_pass,
                "acceptance_rate": blocks[name].acceptance_rate,
                "by_place": blocks[name].as_list(),
            },
        }
    return {
        "documents": len(results),
        "gamma": gamma,
        "conditions": conditions,
        "differences": {
            name: table.difference(name, BASELINE)
            for name in table.names
            if BASELINE in table.names and name != BASELINE
        },
        "decomposition": {
            part: table.difference(one, other)
            for part, (one, other) in PARTS.items()
            if {one, other} <= set(table.names)
        },
        "depth": _depth(results),
        "live": _live(results),
        "per_document": [_document(result) for result in results],
    }


class Table:
    """Overlaps summed by document and condition, [documents, conditions], pooled and jackknifed.

    `first` and `end` bound the positions that count, from 0; documents may have none.
    """

    def __init__(
        self, results: Sequence[DocumentAlpha], first: int = 0, end: int | None = None
    ) -> None:
        self.names = list(results[0].readings)
        overlaps = [[r.readings[n].overlaps[first:end] for n in self.names] for r in results]
        weights: Array = np.array([float(len(row[0])) for row in overlaps])
        self.positions = int(weights.sum())
        sums: Array = np.array([[float(sum(values)) for values in row] for row in overlaps])
        if self.positions:
            self._pooled = pooled(sums, weights)
            self._without = left_out(sums, weights)

    def alpha(self, name: str) -> float:
        return float(self._pooled[self.names.index(name)])

    def interval(self, name: str) -> list[float] | None:
        """None for too few documents; α is a share, so it ends at 0 and 1."""
        found = interval(self.alpha(name), self._without[:, self.names.index(name)])
        return found and [max(0.0, found[0]), min(1.0, found[1])]

    def difference(self, one: str, other: str) -> dict[str, Any]:
        """one - other, and the same in parts of other, with intervals."""
        a, b = self.names.index(one), self.names.index(other)
        value, whole = float(self._pooled[a] - self._pooled[b]), float(self._pooled[b])
        without = self._without[:, a] - self._without[:, b]
        relative = value / whole if whole else None
        return {
            "difference": value,
            "ci95": interval(value, without),
            "relative": relative,
            "relative_ci95": None
            if relative is None
            else interval(relative, without / self._without[:, b]),
        }


def _depth(results: Sequence[DocumentAlpha]) -> list[dict[str, Any]]:
    """α by position in the summary: one entry for each band of `DEPTHS` that has any."""
    bands = []
    for first, end in zip(DEPTHS, (*DEPTHS[1:], None), strict=True):
        table = Table(results, first, end)
        if not table.positions:
            break
        bands.append(
            {
                "from": first + 1,
                "to": end or max(result.positions for result in results),
                "positions": table.positions,
                "alpha": {name: table.alpha(name) for name in table.names},
                "minus_identical": {
                    name: {k: d[k] for k in ("difference", "ci95")}
                    for name in table.names
                    if BASELINE in table.names
                    and name != BASELINE
                    and (d := table.difference(name, BASELINE))
                },
            }
        )
    return bands


def _live(results: Sequence[DocumentAlpha]) -> dict[str, Any]:
    """The runs that wrote the summaries: temperature 0, the draft prompted as the target."""
    runs = [result.live for result in results]
    judged = sum(run.judged for run in runs)
    return {
        "draft_prompt": BASELINE,
        "gamma": sorted({run.gamma for run in runs}),
        "alpha": ratio(sum(run.overlap for run in runs), judged),
        "acceptance_rate": ratio(sum(run.accepted for run in runs), judged),
        "tokens_per_pass": ratio(sum(run.emitted for run in runs), sum(run.passes for run in runs)),
    }


def _document(result: DocumentAlpha) -> dict[str, Any]:
    count = result.positions
    return {
        "id": result.id,
        "positions": count,
        "prompt_tokens": result.prompt_tokens,
        "finish_reason": result.reason,
        "alpha": {name: sum(r.overlaps) / count for name, r in result.readings.items()},
        "agreement": {name: sum(r.agreed) / count for name, r in result.readings.items()},
    }
