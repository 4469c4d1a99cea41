"""Counts of yes and no: rates with intervals, and tests of a difference.

Wilson 1927 for one rate; Newcombe 1998, method 10, for the difference of two, built from their
Wilson intervals; Fisher's exact test; the sign test (exact binomial, ties left out).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sidecar_core.report import ratio


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
