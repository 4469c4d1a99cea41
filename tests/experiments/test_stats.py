"""The bootstrap against scipy and known cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from sidecar_core.experiments.stats import (
    Count,
    difference,
    interval,
    pooled,
    resampled,
    sign_test,
)

RESAMPLES = 20_000


def summed(documents: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Sums of two conditions over documents of different length, and the lengths."""
    source = np.random.default_rng(seed)
    weights = source.integers(20, 120, documents).astype(float)
    level = source.normal(0.65, 0.08, documents)
    gap = source.normal(0.02, 0.01, documents)
    return np.stack([level * weights, (level - gap) * weights], axis=1), weights


def test_long_documents_count_more():
    assert pooled(np.array([[1.0], [9.0]]), np.array([10.0, 10.0])) == pytest.approx([0.5])
    assert pooled(np.array([[1.0], [27.0]]), np.array([10.0, 30.0])) == pytest.approx([0.7])


def test_the_interval_of_alpha_is_scipys():
    sums, weights = summed(40)
    ours = interval(resampled(sums, weights, resamples=RESAMPLES)[:, 0], 40)
    theirs = scipy.stats.bootstrap(
        (sums[:, 0], weights),
        lambda s, w, axis: s.sum(axis) / w.sum(axis),
        paired=True,
        vectorized=True,
        method="percentile",
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert ours == pytest.approx([theirs.low, theirs.high], abs=1e-3)


def test_the_interval_of_a_difference_is_scipys_paired_one():
    sums, weights = summed(40)
    samples = resampled(sums, weights, resamples=RESAMPLES)
    ours = interval(samples[:, 0] - samples[:, 1], 40)
    theirs = scipy.stats.bootstrap(
        (sums[:, 0] - sums[:, 1], weights),
        lambda s, w, axis: s.sum(axis) / w.sum(axis),
        paired=True,
        vectorized=True,
        method="percentile",
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert ours == pytest.approx([theirs.low, theirs.high], abs=2e-4)
    unpaired = interval(samples[:, 0], 40)
    assert ours[1] - ours[0] < (unpaired[1] - unpaired[0]) / 5


def test_documents_that_agree_leave_no_doubt():
    weights = np.array([10.0, 20.0, 30.0])
    low, high = interval(resampled(0.6 * weights[:, None], weights)[:, 0], 3)
    assert low == pytest.approx(0.6)
    assert high == pytest.approx(0.6)


def test_two_documents_have_the_interval_that_can_be_worked_out_by_hand():
    # Each twice with probability 1/4, both once with 1/2: the central 95 % reach both ends.
    samples = resampled(np.array([[2.0], [8.0]]), np.array([10.0, 10.0]))
    assert interval(samples[:, 0], 2) == pytest.approx([0.2, 0.8])
    assert np.mean(np.isclose(samples, 0.5)) == pytest.approx(0.5, abs=0.02)


def test_one_document_has_no_interval():
    samples = resampled(np.array([[5.0]]), np.array([10.0]))
    assert interval(samples[:, 0], 1) is None


def test_draws_without_any_position_are_left_out():
    samples = resampled(np.array([[5.0], [0.0]]), np.array([10.0, 0.0]))
    assert np.isnan(samples).any()
    assert interval(samples[:, 0], 2) == pytest.approx([0.5, 0.5])


def test_the_same_seed_gives_the_same_interval_in_any_batches(monkeypatch):
    sums, weights = summed(30)
    whole = resampled(sums, weights, seed=3)
    monkeypatch.setattr("sidecar_core.experiments.stats._CELLS", 30 * 1_000)
    assert np.array_equal(whole, resampled(sums, weights, seed=3))
    assert not np.array_equal(whole, resampled(sums, weights, seed=4))


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    held = 0
    for seed in range(200):
        source = np.random.default_rng(seed)
        weights = source.integers(20, 120, 60).astype(float)
        sums = (source.normal(0.65, 0.08, 60) * weights)[:, None]
        low, high = interval(resampled(sums, weights, seed=seed, resamples=1_000)[:, 0], 60)
        held += low <= 0.65 <= high
    assert 0.90 <= held / 200 <= 0.99


# --- counts of yes and no


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
