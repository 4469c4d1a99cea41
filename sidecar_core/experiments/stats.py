"""Intervals: the bootstrap over documents, and what α promises about speed.

Positions of one summary depend on each other, so that documents, not positions, are what is drawn
again (Efron and Tibshirani 1993, chapters 6, 8 and 13). α is a ratio of two sums over documents,
Σ overlaps / Σ positions; both are summed anew over the documents drawn. The same draws serve all
conditions, so that a difference of two columns is a paired one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

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
