"""The loop, against the plain slow way: no cache, one token at a time."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from sidecar_core.decoding import speculative
from sidecar_core.decoding.cache import SegmentedCache
from sidecar_core.decoding.draft_length import BASE_ROUNDS, Auto, Fixed
from sidecar_core.decoding.passes import forward
from sidecar_core.decoding.sampling import Sampler
from sidecar_core.decoding.speculative import Clock, Decoding, Side, speculate
from sidecar_core.errors import SidecarError
from sidecar_core.events import (
    BlockEnded,
    PlainPass,
    RoundStarted,
    TokenAccepted,
    TokenBonus,
    TokenCorrected,
    TokenDrafted,
    TokenRejected,
)
from sidecar_core.models.kernels.calibration import Calibration
from sidecar_core.report import RunReport
from tests.tiny import tiny_model
from tests.toys import NoText, ScriptSide, ToySide

PROMPT = (3, 14, 15, 9, 26, 5, 31)


CHEAP = Calibration()


def side(model, prompt=PROMPT, tail=1) -> Side:
    cache = SegmentedCache()
    forward(model, cache, prompt[:-tail], 0, segment="head", rows=0)
    return Side(model, cache, prompt[-tail:], len(prompt) - tail)


def decoding(**changes) -> Decoding:
    fields = {
        "sampler": Sampler(),
        "length": Fixed(4),
        "max_tokens": 40,
        "stop_ids": frozenset(),
        "vocabulary": 40,
        "generator": torch.Generator().manual_seed(0),
    }
    return Decoding(**{**fields, **changes})


def run(target, draft, settings):
    """All events, and the reason."""
    events, stream = [], speculate(target, draft, settings, NoText(), Clock())
    while True:
        try:
            events.append(next(stream))
        except StopIteration as end:
            return events, end.value


def slow_greedy(model, count, vocabulary=40, prompt=PROMPT) -> list[int]:
    """The oracle: every token by a full pass over everything before it."""
    ids = list(prompt)
    for _ in range(count):
        logits = model.network(input_ids=torch.tensor([ids])).logits[0, -1, :vocabulary]
        ids.append(int(logits.argmax()))
    return ids[len(prompt) :]


@pytest.mark.parametrize("tail", [1, 3])
@pytest.mark.parametrize("gamma", [0, 1, 4, 7])
def test_greedy_speculative_text_is_the_targets_own(gamma, tail):
    target = tiny_model(0)
    mine, reason = side(target, tail=tail), None
    _, reason = run(mine, side(tiny_model(1), tail=tail), decoding(length=Fixed(gamma)))
    assert mine.emitted == slow_greedy(target, 40)
    assert reason == "length"


def test_sampled_text_at_a_tiny_temperature_is_greedy():
    target = tiny_model(0)
    mine = side(target)
    run(mine, side(tiny_model(1)), decoding(sampler=Sampler(1e-6)))
    assert mine.emitted == slow_greedy(target, 40)


def test_a_draft_that_is_the_target_has_every_token_accepted_in_every_round():
    model = tiny_model(0)
    events, _ = run(side(model), side(model), decoding(max_tokens=50))
    report = RunReport.of(events)
    assert report.judged == report.accepted == report.drafted == 40
    assert len(report.rounds) == 10
    assert report.alpha == pytest.approx(1.0, abs=1e-5)
    assert report.tokens_per_pass == 5.0


def test_after_each_round_the_caches_hold_the_committed_tokens_and_no_trace_of_rejected_ones():
    target, draft = tiny_model(0), tiny_model(1)
    mine, other = side(target), side(draft)
    accepted_all = False
    for event in speculate(mine, other, decoding(), NoText(), Clock()):
        if isinstance(event, RoundStarted) and mine.emitted:
            committed = len(PROMPT) + len(mine.emitted)
            assert mine.cache.length == committed - 1
            assert other.cache.length == committed - (2 if accepted_all else 1)
            for model, cache in ((target, mine.cache), (draft, other.cache)):
                fresh = SegmentedCache()
                ids = [*PROMPT, *mine.emitted][: cache.length]
                forward(model, fresh, ids, 0, segment="head", rows=0)
                for ours, theirs in zip(cache.layers, fresh.layers, strict=True):
                    assert torch.allclose(ours.keys, theirs.keys, atol=1e-5)
                    assert torch.allclose(ours.values, theirs.values, atol=1e-5)
        accepted_all = isinstance(event, TokenBonus) or (
            accepted_all and not isinstance(event, TokenCorrected)
        )


def test_one_pass_per_drafted_token_and_one_per_round_and_none_besides():
    mine, other = side(tiny_model(0)), side(tiny_model(1))
    report = RunReport.of(run(mine, other, decoding())[0])
    assert mine.passes == len(report.rounds)
    assert other.passes == report.drafted


def test_vocabularies_of_different_width_share_the_smaller_one():
    target, draft = tiny_model(0, vocab=40), tiny_model(1, vocab=32)
    mine = side(target)
    events, _ = run(mine, side(draft), decoding(vocabulary=32, sampler=Sampler(1.0)))
    assert all(token < 32 for token in mine.emitted)
    assert all(0 <= e.overlap <= 1.00001 for e in events if isinstance(e, TokenAccepted))


def test_end_of_text_inside_an_accepted_block_ends_the_text_there():
    script = [1, 7, 2, 3, 4]
    target, draft = ScriptSide(script), ScriptSide(script)
    _, reason = run(target, draft, decoding(stop_ids=frozenset({7}), vocabulary=8))
    assert target.emitted == [1, 7]
    assert reason == "stop"


def test_a_stop_before_the_length_limit_inside_one_block_is_a_stop():
    script = [1, 2, 7, 3, 4]
    target = ScriptSide(script)
    settings = decoding(stop_ids=frozenset({7}), vocabulary=8, max_tokens=5)
    _, reason = run(target, ScriptSide(script), settings)
    assert target.emitted == [1, 2, 7]
    assert reason == "stop"


@pytest.mark.parametrize("limit", [1, 2, 5, 6])
def test_a_length_limit_inside_a_block_gives_exactly_that_many_tokens(limit):
    script = [1, 2, 3, 4, 5]
    target = ScriptSide(script)
    _, reason = run(target, ScriptSide(script), decoding(vocabulary=8, max_tokens=limit))
    assert len(target.emitted) == limit
    assert reason == "length"


def test_a_block_whose_first_token_is_rejected_counts_one_judged_and_four_drafted():
    target, draft = ScriptSide([1]), ScriptSide([2])
    events, _ = run(target, draft, decoding(vocabulary=8, max_tokens=6))
    events = [event for event in events if not isinstance(event, BlockEnded)]
    kinds = [type(event) for event in events[:7]]
    assert kinds == [RoundStarted, *[TokenDrafted] * 4, TokenRejected, TokenCorrected]
    report = RunReport.of(events[:7])
    assert (report.drafted, report.judged, report.accepted) == (4, 1, 0)
    assert report.text == ""
    assert report.ids == [1]


def test_events_tell_what_the_rule_compared():
    events, _ = run(side(tiny_model(0)), side(tiny_model(1)), decoding(sampler=Sampler(0.8, 10)))
    accepted = [e for e in events if isinstance(e, TokenAccepted)]
    rejected = [e for e in events if isinstance(e, TokenRejected)]
    assert accepted
    assert rejected
    assert all(e.u <= min(1.0, e.p / e.q) for e in accepted)
    assert all(e.u > e.p / e.q for e in rejected)


def test_the_same_seed_gives_the_same_events_and_another_one_others():
    def ids(seed):
        mine = side(tiny_model(0))
        source = torch.Generator().manual_seed(seed)
        run(mine, side(tiny_model(1)), decoding(sampler=Sampler(1.0), generator=source))
        return mine.emitted

    assert ids(5) == ids(5)
    assert ids(5) != ids(6)


def test_stop_takes_effect_within_one_pass():
    mine, other = side(tiny_model(0)), side(tiny_model(1))
    calls = iter([False, False, False, True])
    events, reason = run(mine, other, decoding(stopped=lambda: next(calls)))
    assert reason == "cancelled"
    assert sum(isinstance(e, TokenDrafted) for e in events) == 3
    assert mine.passes == 0


def test_logits_that_are_no_numbers_end_in_a_clear_error():
    model = tiny_model(0)
    model.network.lm_head.weight.data.fill_(float("nan"))
    with pytest.raises(SidecarError, match="NaN or infinity"):
        run(side(model), side(tiny_model(1)), decoding())


def cheap_draft() -> Auto:
    return Auto(Calibration(), Calibration(seconds=(0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1)))


def test_an_auto_draft_length_changes_the_rounds_and_not_the_text():
    target = tiny_model(0)
    mine = side(target)
    events, _ = run(mine, side(tiny_model(1)), decoding(length=cheap_draft()))
    assert mine.emitted == slow_greedy(target, 40)
    assert len({e.drafted for e in events if isinstance(e, BlockEnded)}) > 1


def test_every_block_says_why_it_ended():
    model = tiny_model(0)
    stop = slow_greedy(model, 40)[30]
    events, _ = run(side(model), side(tiny_model(0)), decoding(stop_ids=frozenset([stop])))
    why = [e.why for e in events if isinstance(e, BlockEnded)]
    assert why[-1] == "end of text"
    assert set(why[:-1]) <= {"gamma", "end of text"}
    events, _ = run(side(model), side(tiny_model(0)), decoding(max_tokens=3))
    assert [e.why for e in events if isinstance(e, BlockEnded)] == ["limit"]
    rounds = sum(isinstance(e, RoundStarted) for e in events)
    assert rounds == 1


@pytest.mark.parametrize(
    ("length", "extra"), [(Fixed(0), set()), (Fixed(4), {True}), (Auto(CHEAP, CHEAP), {False})]
)
def test_plain_decoding_is_measured_and_leaves_no_trace(length, extra):
    model = tiny_model(0)
    mine, other = side(model, tail=3), side(tiny_model(1), tail=3)
    events, _ = run(mine, other, decoding(length=length))
    measured = [event for event in events if isinstance(event, PlainPass)]
    kinds = {event.extra for event in measured if event.round in BASE_ROUNDS}
    assert kinds == (extra or {False})
    assert all(event.pass_seconds > 0 for event in measured)
    assert 0 not in {event.round for event in measured}  # that pass reads the tail as well
    assert mine.emitted == slow_greedy(model, 40)
    assert mine.cache.length == len(PROMPT) + 40 - 1
    assert (mine.extra_seconds > 0) == (extra == {True})


@pytest.mark.parametrize("gamma", [0, 4])
def test_where_rows_depend_on_each_other_each_is_a_pass_of_its_own(gamma, monkeypatch):
    target = dataclasses.replace(tiny_model(0), calibration=Calibration(rows_alike=False))
    rows = []
    inner = speculative.forward
    monkeypatch.setattr(
        "sidecar_core.decoding.speculative.forward",
        lambda model, cache, ids, *rest, **options: (
            rows.append((model, len(ids))) or inner(model, cache, ids, *rest, **options)
        ),
    )
    mine = side(target, tail=3)
    run(mine, side(tiny_model(1), tail=3), decoding(length=Fixed(gamma)))
    assert mine.emitted == slow_greedy(target, 40)
    assert {count for model, count in rows if model is target} == {1}


def test_the_overlap_is_that_of_the_raw_softmax_at_any_temperature():
    target, draft = tiny_model(0), tiny_model(1)
    sampler = Sampler(0.3, 5, 0.8)
    mine = side(target)
    events, _ = run(mine, side(draft), decoding(sampler=sampler, max_tokens=20))
    ids, found = list(PROMPT), []
    for event in events:
        if isinstance(event, TokenAccepted | TokenCorrected):
            p, q = (
                model.network(input_ids=torch.tensor([ids])).logits[0, -1].softmax(-1)
                for model in (target, draft)
            )
            found.append(event.overlap)
            assert event.overlap == pytest.approx(float(torch.minimum(p, q).sum()), abs=1e-4)
        if isinstance(event, TokenAccepted | TokenCorrected | TokenBonus):
            ids.append(event.id)
    assert len(found) > 5
    assert ids[len(PROMPT) :] == mine.emitted


def test_a_corrected_token_carries_the_targets_p_and_the_drafts_q():
    target, draft = torch.tensor([0.1, 0.2, 0.7]).log(), torch.tensor([0.6, 0.3, 0.1]).log()
    events, _ = run(
        ToySide(target), ToySide(draft), decoding(sampler=Sampler(1.0), vocabulary=3, max_tokens=60)
    )
    corrected = [e for e in events if isinstance(e, TokenCorrected)]
    assert corrected
    for event in corrected:
        assert event.p == pytest.approx(float(target.exp()[event.id]), abs=1e-6)
        assert event.q == pytest.approx(float(draft.exp()[event.id]), abs=1e-6)
