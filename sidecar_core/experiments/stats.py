"""Intervals: the bootstrap over documents, and what α promises about speed.

Positions of one summary depend on each other, so that documents, not positions, are what is drawn
again (Efron and Tibshirani 1993, chapters 6, 8 and 13). α is a ratio of two sums over documents,
Σ overlaps / Σ positions; both are summed anew over the documents drawn. The same draws serve all
conditions, so that a difference of two columns is a paired one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sidecar_core.report import ratio

RESAMPLES = 10_000
LEVEL = 0.95
_CELLS = 4_000_000
"""Most counts in memory at once."""

Array = npt.NDArray[np.float64]


def pooled(sums: Array, weights: Array) -> Array:
    """Σ sums / Σ weights over documents: [documents, k] and [documents] give [k]."""
    return np.asarray(sums.sum(0) / weights.sum())


def resampled(sums: Array, weights: Array, *, seed: int = 0, resamples: int = RESAMPLES) -> Array:
    """`pooled` over documents drawn with replacement, [resamples, k].

    Rows in which no weight was drawn are NaN. The memory does not grow with `resamples` times
    documents.
    """
    source = np.random.default_rng(seed)
    count = len(weights)
    batch = max(1, _CELLS // count)
    parts = []
    for start in range(0, resamples, batch):
        rows = min(batch, resamples - start)
        drawn = source.multinomial(count, np.full(count, 1 / count), size=rows)
        whole = drawn @ weights
        whole[whole == 0] = np.nan
        parts.append(drawn @ sums / whole[:, None])
    return np.concatenate(parts)


def interval(samples: Array, documents: int) -> list[float] | None:
    """The central 95 % of `samples`, [low, high]; None where one document says nothing of it."""
    if documents < 2 or np.isnan(samples).all():
        return None
    tail = 50 * (1 - LEVEL)
    low, high = np.nanpercentile(samples, [tail, 100 - tail])
    return [float(low), float(high)]


# --- counts of yes and no


@dataclass(frozen=True, slots=True)
class Count:
    """`hits` of `trials`."""

    hits: int
    trials: int

    @property
    def rate(self) -> float | None:
        return ratio(self.hits, self.trials)

    @property
    def ci95(self) -> list[float] | None:
        """Wilson's interval at 95 %, [low, high]; None without trials."""
        if not self.trials:
            return None
        from scipy.stats import binomtest

        found = binomtest(self.hits, self.trials).proportion_ci(0.95, method="wilson")
        return [float(found.low), float(found.high)]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first rate minus the second; `p_value` is Fisher's, two-sided."""

    difference: float
    ci95: list[float]
    p_value: float

    def as_dict(self) -> dict[str, Any]:
        return {"difference": self.difference, "ci95": self.ci95, "p_value": self.p_value}


def difference(one: Count, other: Count) -> Difference | None:
    """None where one of them has no trials."""
    if one.rate is None or other.rate is None or not one.ci95 or not other.ci95:
        return None
    from scipy.stats import fisher_exact

    (low1, high1), (low2, high2) = one.ci95, other.ci95
    gap = one.rate - other.rate
    table = [[c.hits, c.trials - c.hits] for c in (one, other)]
    return Difference(
        gap,
        [
            gap - math.hypot(one.rate - low1, high2 - other.rate),
            gap + math.hypot(high1 - one.rate, other.rate - low2),
        ],
        float(fisher_exact(table).pvalue),
    )


def sign_test(wins: int, losses: int) -> float:
    """Two-sided p of so uneven a split where both are equally likely; 1 where there is none."""
    if not wins + losses:
        return 1.0
    from scipy.stats import binomtest

    return float(binomtest(wins, wins + losses).pvalue)
