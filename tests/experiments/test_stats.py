"""Intervals: against scipy, by hand, and how often they hold the truth in simulations."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from sidecar_core.experiments.stats import (
    MIN_DOCUMENTS,
    Clusters,
    Count,
    clustered,
    difference,
    interval,
    left_out,
    pooled,
    sign_test,
)

ARTICLES = (10, 30, 100)
RUNS = 2_000
WANTED = 0.93


def summed(documents: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Sums of two conditions over documents of different length, and the lengths."""
    source = np.random.default_rng(seed)
    weights = source.integers(20, 120, documents).astype(float)
    level = source.normal(0.65, 0.08, documents)
    gap = source.normal(0.02, 0.01, documents)
    return np.stack([level * weights, (level - gap) * weights], axis=1), weights


def of_ratio(sums: np.ndarray, weights: np.ndarray) -> list[float] | None:
    return interval(float(pooled(sums, weights)[0]), left_out(sums, weights)[:, 0])


# --- pooled over articles


def test_long_documents_count_more():
    assert pooled(np.array([[1.0], [9.0]]), np.array([10.0, 10.0])) == pytest.approx([0.5])
    assert pooled(np.array([[1.0], [27.0]]), np.array([10.0, 30.0])) == pytest.approx([0.7])


def test_of_documents_of_one_length_the_interval_is_the_t_test_s():
    values = np.array([0.6, 0.7, 0.75, 0.55, 0.9])
    found = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.95)
    ours = of_ratio(values[:, None] * 40, np.full(5, 40.0))
    assert ours == pytest.approx([found.low, found.high])


def test_many_documents_have_the_interval_of_scipys_bootstrap():
    sums, weights = summed(400)
    theirs = scipy.stats.bootstrap(
        (sums[:, 0], weights),
        lambda s, w, axis: s.sum(axis) / w.sum(axis),
        paired=True,
        vectorized=True,
        method="percentile",
        n_resamples=5_000,
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert of_ratio(sums, weights) == pytest.approx([theirs.low, theirs.high], abs=1e-3)


def test_a_difference_is_paired_so_it_is_known_better_than_either_side():
    sums, weights = summed(40)
    low, high = of_ratio(sums[:, :1] - sums[:, 1:], weights)
    alone = of_ratio(sums[:, :1], weights)
    assert low <= 0.02 <= high
    assert high - low < (alone[1] - alone[0]) / 5


def test_documents_that_agree_leave_no_doubt():
    weights = np.array([10.0, 20.0, 30.0])
    assert of_ratio(0.6 * weights[:, None], weights) == pytest.approx([0.6, 0.6])


def test_fewer_documents_than_can_say_anything_have_no_interval():
    sums, weights = summed(MIN_DOCUMENTS)
    assert of_ratio(sums, weights) is not None
    assert of_ratio(sums[1:], weights[1:]) is None
    assert of_ratio(sums[:1], weights[:1]) is None
    assert clustered([1, 2], [5, 5]) is None


def test_documents_without_positions_do_not_count():
    sums, weights = summed(5)
    more = np.vstack([sums, np.zeros((4, 2))]), np.append(weights, np.zeros(4))
    assert of_ratio(*more) == of_ratio(sums, weights)
    assert clustered([1, 0, 2, 0, 0], [5, 0, 6, 7, 0]) == clustered([1, 2, 0], [5, 6, 7])
    assert clustered([1, 0, 2], [5, 0, 6]) is None


def test_no_hits_at_all_give_an_upper_bound_that_knows_articles_from_tags():
    # Were every article's tags copies of each other: 0 of 10, Clopper and Pearson.
    found = scipy.stats.binomtest(0, 10).proportion_ci(0.95, method="exact")
    assert clustered([0] * 10, [40] * 10) == pytest.approx([found.low, found.high])
    assert clustered([40] * 10, [40] * 10) == pytest.approx([1 - found.high, 1.0])


def test_a_difference_of_two_rates_that_are_both_nought_is_not_known_to_be_nought():
    none = Clusters((0,) * 10, (40,) * 10)
    found = none.minus(none)
    assert found is not None
    assert found["difference"] == 0
    low, high = found["ci95"]
    assert low == pytest.approx(-high)
    assert high > 0.2


def test_a_difference_of_rates_that_rise_and_fall_together_is_known_better():
    trials = (30,) * 12
    one = Clusters((3, 9, 12, 2, 7, 15, 4, 10, 6, 1, 13, 8), trials)
    alike = Clusters(tuple(hits - 1 for hits in one.hits), trials)
    shuffled = Clusters(tuple(sorted(alike.hits)), trials)
    near, far = one.minus(alike), one.minus(shuffled)
    assert near is not None
    assert far is not None
    assert near["difference"] == pytest.approx(far["difference"])
    assert near["ci95"][1] - near["ci95"][0] < (far["ci95"][1] - far["ci95"][0]) / 2


# --- simulated coverage: articles are drawn anew in each run, and the truth is known


@pytest.mark.parametrize("articles", ARTICLES)
@pytest.mark.parametrize("slope", [0.0, 0.0008])
def test_the_interval_of_alpha_holds_the_truth(articles: int, slope: float):
    """Summaries of 20 to 160 tokens; with `slope`, longer ones have a higher α."""
    source = np.random.default_rng(1)
    weights = source.integers(20, 161, (RUNS, articles)).astype(float)
    level = source.beta(28, 9, weights.shape) + slope * (weights - 90)
    sums = weights * (level + source.normal(0, 0.3, weights.shape) / np.sqrt(weights))
    every = np.arange(20, 161)
    truth = 28 / 37 + slope * ((every - 90) * every).sum() / every.sum()
    found = [of_ratio(s[:, None], w) for s, w in zip(sums, weights, strict=True)]
    assert np.mean([low <= truth <= high for low, high in found]) >= WANTED


@pytest.mark.parametrize("articles", ARTICLES)
@pytest.mark.parametrize("rate", [0.01, 0.03, 0.2])
@pytest.mark.parametrize("likeness", [0.02, 0.3])
def test_the_interval_of_a_rate_holds_the_truth(articles: int, rate: float, likeness: float):
    """15 to 45 tags an article; `likeness` is the correlation of two tags of one article."""
    source = np.random.default_rng(2)
    trials = source.integers(15, 46, (RUNS // 2, articles))
    own = source.beta(rate * (1 / likeness - 1), (1 - rate) * (1 / likeness - 1), trials.shape)
    hits = source.binomial(trials, own)
    found = [clustered(h, t) for h, t in zip(hits.tolist(), trials.tolist(), strict=True)]
    assert np.mean([low <= rate <= high for low, high in found]) >= WANTED


@pytest.mark.parametrize("articles", ARTICLES)
def test_the_interval_of_a_paired_difference_of_rates_holds_the_truth(articles: int):
    """20 % against 3 %, both higher in articles that are hard to tag."""
    source = np.random.default_rng(3)
    trials = source.integers(15, 46, (RUNS // 2, articles))
    hard = source.beta(1, 2, trials.shape)
    sides = [source.binomial(trials, rate * 3 * hard) for rate in (0.2, 0.03)]
    held = 0
    for one, other, of in zip(*(side.tolist() for side in sides), trials.tolist(), strict=True):
        found = Clusters(tuple(one), tuple(of)).minus(Clusters(tuple(other), tuple(of)))
        assert found is not None
        held += found["ci95"][0] <= 0.17 <= found["ci95"][1]
    assert held / len(trials) >= WANTED


# --- counts of yes and no


def wilson(hits: int, trials: int) -> list[float]:
    """The formula as it is printed in Wilson 1927."""
    z = 1.959963984540054
    p = hits / trials
    centre = p + z * z / (2 * trials)
    spread = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    return [(centre - spread) / (1 + z * z / trials), (centre + spread) / (1 + z * z / trials)]


@pytest.mark.parametrize(("hits", "trials"), [(0, 60), (15, 60), (60, 60), (1, 2), (3, 7)])
def test_intervals_are_wilsons(hits: int, trials: int):
    assert Count(hits, trials).ci95 == pytest.approx(wilson(hits, trials), abs=1e-9)


def test_without_trials_there_is_neither_rate_nor_interval():
    assert Count(1, 1).ci95 is None  # one list says nothing of how often
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
