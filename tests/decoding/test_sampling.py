"""The rules: what is drawn from, what is accepted, what takes a rejected token's place."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from sidecar_core.decoding.draft_length import Auto, Fixed
from sidecar_core.decoding.sampling import (
    Sampler,
    _nucleus,
    accepts,
    draw,
    overlap,
    residual,
    uniform,
)
from sidecar_core.decoding.speculative import Clock, Decoding, speculate
from sidecar_core.models.kernels.calibration import Calibration
from tests.toys import NoText, ToySide

P = torch.tensor([0.05, 0.4, 0.1, 0.15, 0.3]).log()
Q = torch.tensor([0.3, 0.1, 0.35, 0.15, 0.1]).log()


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def decoding(sampler: Sampler, **changes) -> Decoding:
    fields = {
        "sampler": sampler,
        "length": Fixed(4),
        "max_tokens": 100,
        "stop_ids": frozenset(),
        "vocabulary": 5,
        "generator": generator(),
    }
    return Decoding(**{**fields, **changes})


@pytest.mark.parametrize("length", ["fixed", "auto"])
@pytest.mark.parametrize(
    "sampler", [Sampler(1.0), pytest.param(Sampler(0.7, top_k=3), marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("draws", [20_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_emitted_tokens_follow_the_target_whatever_the_draft(draws, sampler, length):
    target, draft = ToySide(P), ToySide(Q)
    rule = Fixed(2) if length == "fixed" else Auto(Calibration(), Calibration(seconds=(0.2,) * 7))
    settings = decoding(sampler, max_tokens=draws, length=rule)
    for _ in speculate(target, draft, settings, NoText(), Clock()):
        pass
    counts = Counter(target.emitted)
    expected = sampler.distribution(P)
    distance = sum(abs(counts[t] / draws - float(expected[t])) for t in range(5)) / 2
    assert len(target.emitted) == draws
    assert distance < (0.01 if draws == 200_000 else 0.02)


def test_temperature_raises_probabilities_to_its_inverse_power():
    p = P.exp()
    assert torch.allclose(Sampler(0.5).distribution(P), p**2 / (p**2).sum())


def test_top_k_keeps_exactly_k_tokens_renormalised():
    kept = Sampler(1.0, top_k=2).distribution(P)
    assert kept.count_nonzero() == 2
    assert kept[1] == pytest.approx(0.4 / 0.7)
    assert kept[4] == pytest.approx(0.3 / 0.7)


def test_top_p_keeps_the_smallest_set_that_holds_the_mass():
    assert Sampler(1.0, top_p=0.7).distribution(P).nonzero().flatten().tolist() == [1, 4]
    assert Sampler(1.0, top_p=0.71).distribution(P).nonzero().flatten().tolist() == [1, 3, 4]
    assert Sampler(1.0, top_p=0.01).distribution(P).tolist() == [0, 1, 0, 0, 0]
    assert _nucleus(torch.tensor([0.5, 0.25, 0.25]), 0.5).tolist() == [1, 0, 0]


def test_top_p_over_a_wide_flat_vocabulary_equals_the_full_sort():
    logits = torch.randn(5000, generator=generator()) * 0.1
    kept = Sampler(1.0, top_p=0.9).distribution(logits)
    values, order = logits.softmax(-1).sort(descending=True)
    wanted = order[: int((values.cumsum(-1) < 0.9).sum()) + 1]
    assert set(kept.nonzero().flatten().tolist()) == set(wanted.tolist())
    assert float(kept.sum()) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("temperature", [0.0, 1e-6, 1e-30])
def test_a_vanishing_temperature_is_greedy_and_finite(temperature):
    assert Sampler(temperature).choose(P * 50, generator()) == 1


def test_temperature_just_above_greedy_is_finite_and_takes_the_argmax():
    probabilities = Sampler(1e-4).distribution(P * 50)
    assert torch.isfinite(probabilities).all()
    assert int(probabilities.argmax()) == 1


def test_u_of_one_accepts_where_p_equals_q_and_never_where_p_is_zero():
    assert accepts(0.3, 0.3, 1.0)
    assert not accepts(0.0, 0.3, 1e-12)


def test_u_is_never_zero(monkeypatch):
    draws = [uniform(generator(seed)) for seed in range(200)]
    assert min(draws) > 0
    assert max(draws) <= 1
    monkeypatch.setattr(torch, "rand", lambda *_, **__: torch.zeros(1))  # the least that it gives
    assert uniform(generator()) == 1


def test_the_residual_of_equal_distributions_is_still_a_distribution():
    p = P.softmax(-1)
    assert torch.equal(residual(p, p), p)
    assert draw(residual(p, p.clone()), generator()) in range(5)


def test_the_residual_is_the_positive_part_of_p_minus_q():
    p, q = P.softmax(-1), Q.softmax(-1)
    wanted = torch.tensor([0, 0.3, 0, 0, 0.2]) / 0.5
    assert torch.allclose(residual(p, q), wanted, atol=1e-6)


def test_the_overlap_is_the_probability_that_a_drafted_token_is_accepted():
    p, q = P.softmax(-1), Q.softmax(-1)
    source = generator()
    accepted = 0
    for _ in range(4000):
        token = draw(q, source)
        accepted += accepts(float(p[token]), float(q[token]), uniform(source))
    assert accepted / 4000 == pytest.approx(float(overlap(p, q)), abs=0.03)


def test_no_rounding_makes_the_overlap_more_than_1():
    p = torch.randn(4, 151_936, generator=generator()).softmax(-1)
    assert (overlap(p, p) <= 1.0).all()
    assert torch.allclose(overlap(p, p), torch.ones(4), atol=1e-4)
