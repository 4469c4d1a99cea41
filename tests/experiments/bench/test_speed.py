"""The benchmark's arithmetic, and one small contest on real weights."""

from __future__ import annotations

import math

import pytest

from sidecar_core.experiments.bench.speed import Bench, Contest, Timing, table


def test_a_ratio_is_the_median_of_the_ratios_within_each_repeat():
    bench = Bench()
    bench.timings["a"] = [Timing(10, 1.0), Timing(10, 2.0), Timing(10, 4.0)]
    bench.timings["b"] = [Timing(10, 2.0), Timing(10, 2.0), Timing(10, 2.0)]
    assert bench.ratio("a", "b") == 1.0
    assert bench.ratio("a", "missing") is None
    assert bench.median("a") == 5.0


@pytest.mark.slow
@pytest.mark.smol
def test_a_contest_measures_every_contestant_on_the_same_number_of_tokens(smol):
    text = "Two night trains will run again in spring, the operator said on Monday."
    plain = (smol.target.network, smol.draft.network)
    contest = Contest(smol, smol, plain, tokens=8, articles={"trains": text})
    steps = list(contest.repeats(1))
    result = contest.bench.as_dict()
    assert set(result["tokens_per_second"]) == {
        "transformers", "transformers_assisted", "fp32", "auto", "auto_fixed", "auto_plain",
    }  # fmt: skip
    assert len(steps) == 7
    assert all(math.isfinite(v) and v > 0 for v in result["tokens_per_second"].values())
    missing = {name for name, ratio in result["ratios"].items() if ratio is None}
    assert missing == {"auto_vs_llama_cpp", "auto_vs_llama_cpp_draft"}  # not asked for
    assert result["alpha"]["auto_plain"] is None
    assert 0 <= result["overhead"] < 1
    assert result["cache_bytes"]["sidecar_masked"] < result["cache_bytes"]["sidecar_attended"]
    assert set(result["first_token_seconds"]) == {"cold", "warm"}
    assert "tokens/s" in table(contest.bench)
