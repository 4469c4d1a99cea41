"""Intervals and tests against figures worked out elsewhere."""

from __future__ import annotations

import math

import pytest

from sidecar_core.experiments.rates import Count, difference, sign_test


def wilson(hits: int, trials: int) -> list[float]:
    """The formula as it is printed in Wilson 1927."""
    z = 1.959963984540054
    p = hits / trials
    centre = p + z * z / (2 * trials)
    spread = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    return [(centre - spread) / (1 + z * z / trials), (centre + spread) / (1 + z * z / trials)]


@pytest.mark.parametrize(("hits", "trials"), [(0, 60), (15, 60), (60, 60), (1, 1), (3, 7)])
def test_intervals_are_wilsons(hits: int, trials: int):
    assert Count(hits, trials).ci95 == pytest.approx(wilson(hits, trials), abs=1e-9)


def test_without_trials_there_is_neither_rate_nor_interval():
    assert Count(0, 0).rate is None
    assert Count(0, 0).ci95 is None
    assert difference(Count(0, 0), Count(1, 2)) is None


def test_the_interval_of_a_difference_is_newcombes():
    # Newcombe 1998, table II, method 10: 56/70 - 48/80 and 9/10 - 3/10.
    found = difference(Count(56, 70), Count(48, 80))
    assert found is not None
    assert found.difference == pytest.approx(0.2)
    assert found.ci95 == pytest.approx([0.0524, 0.3339], abs=5e-5)
    small = difference(Count(9, 10), Count(3, 10))
    assert small is not None
    assert small.ci95 == pytest.approx([0.1705, 0.8090], abs=5e-5)


def test_the_test_of_a_difference_is_fishers():
    # The lady tasting tea: all four cups right is 1 in 70, twice that on both sides.
    tea = difference(Count(4, 4), Count(0, 4))
    assert tea is not None
    assert tea.p_value == pytest.approx(2 / 70)


def test_the_sign_test_counts_how_many_splits_are_as_uneven():
    # 9 to 5 of 14: all outcomes with 9 or more, or 5 or fewer, heads.
    uneven = 2 * sum(math.comb(14, k) for k in range(9, 15)) / 2**14
    assert sign_test(9, 5) == pytest.approx(uneven)
    assert sign_test(5, 9) == pytest.approx(uneven)
    assert sign_test(0, 0) == 1.0
    assert sign_test(3, 3) == 1.0
