"""Results of many articles in one: the JSON object of `alpha`.

α is pooled over positions (long summaries count more), every interval is a bootstrap over
documents, and every difference is paired: all conditions are measured on the same documents.

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
from sidecar_core.experiments.stats import Array, interval, pooled, resampled
from sidecar_core.report import ratio

BASELINE = "identical"

PARTS = {
    "position_cost": ("identical", "masked"),
    "content_leak": ("masked", "visible"),
    "tail_leak": ("masked", "leaky-tail"),
}

DEPTHS = (0, 8, 16, 32, 64, 128)
"""Where the bands of positions in the summary begin; the last one has no end."""


def pool(
    results: Sequence[DocumentAlpha], *, gamma: int, max_tokens: int, seed: int = 0
) -> dict[str, Any]:
    """The fixed keys `conditions` and `per_document`, and what else the measurement says.

    `gamma` drafts a round are assumed for tokens per pass. Without results there is nothing in it.
    """
    if not results:
        return {"documents": 0, "gamma": gamma, "conditions": {}, "per_document": []}
    table = Table(results, seed)
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
        "depth": _depth(results, seed),
        "live": _live(results),
        "per_document": [_document(result) for result in results],
    }


class Table:
    """Overlaps summed by document and condition, [documents, conditions], and their bootstrap.

    `first` and `end` bound the positions that count, from 0; documents may have none.
    """

    def __init__(
        self, results: Sequence[DocumentAlpha], seed: int, first: int = 0, end: int | None = None
    ) -> None:
        self.names = list(results[0].readings)
        overlaps = [[r.readings[n].overlaps[first:end] for n in self.names] for r in results]
        self._weights: Array = np.array([float(len(row[0])) for row in overlaps])
        self._documents = int(np.count_nonzero(self._weights))
        self.positions = int(self._weights.sum())
        sums: Array = np.array([[float(sum(values)) for values in row] for row in overlaps])
        if self.positions:
            self._pooled = pooled(sums, self._weights)
            self._samples = resampled(sums, self._weights, seed=seed)

    def alpha(self, name: str) -> float:
        return float(self._pooled[self.names.index(name)])

    def interval(self, name: str) -> list[float] | None:
        return interval(self._samples[:, self.names.index(name)], self._documents)

    def difference(self, one: str, other: str) -> dict[str, Any]:
        """one - other, and the same in parts of other, with intervals."""
        a, b = self.names.index(one), self.names.index(other)
        samples = self._samples[:, a] - self._samples[:, b]
        value = float(self._pooled[a] - self._pooled[b])
        whole = self._pooled[b]
        return {
            "difference": value,
            "ci95": interval(samples, self._documents),
            "relative": float(value / whole) if whole else None,
            "relative_ci95": interval(samples / self._samples[:, b], self._documents)
            if whole
            else None,
        }


def _depth(results: Sequence[DocumentAlpha], seed: int) -> list[dict[str, Any]]:
    """α by position in the summary: one entry for each band of `DEPTHS` that has any."""
    bands = []
    for first, end in zip(DEPTHS, (*DEPTHS[1:], None), strict=True):
        table = Table(results, seed, first, end)
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
