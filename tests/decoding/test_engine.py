"""Whole runs, short ones: of a tiny pair, and slowly of real weights (SmolLM2-135M)."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections.abc import Iterator

import pytest
import torch

from sidecar_core.decoding.engine import Engine
from sidecar_core.decoding.prefix import PrefixStore
from sidecar_core.errors import SidecarError
from sidecar_core.events import (
    Event,
    PhaseChanged,
    PrefillProgress,
    RoundStarted,
    RunFailed,
    RunFinished,
    RunStarted,
    SummaryFinished,
    TagsFinished,
    TagsSkipped,
    TagText,
    TokenDrafted,
    from_json,
    to_json,
)
from sidecar_core.models.pair import Pair
from sidecar_core.report import RunReport
from sidecar_core.settings import RunSettings
from tests.tiny_pair import tiny_engine

ARTICLE = """The harbour council of Marlow Quay voted on Tuesday to close the old fish market \
and to build a flood wall in its place. Engineers had warned that the quay sinks by nine \
millimetres a year. Stall owners will move to a hall on Tern Street."""

OTHER = """A rare comet will pass the northern sky this week, astronomers at Dunmore said. It can \
be seen without a telescope shortly before dawn, low above the horizon."""

SHORT = RunSettings(max_tokens=24, gamma=4)

MODES = [
    {"draft_prompt": "compound", "suffix_masking": True},
    {"draft_prompt": "compound", "suffix_masking": False},
    {"draft_prompt": "compound", "positions": "rebased"},
    {"draft_prompt": "identical"},
    {"draft_prompt": "unrelated"},
]


@pytest.fixture(
    scope="module",
    params=["tiny", pytest.param("smol", marks=[pytest.mark.smol, pytest.mark.slow])],
)
def pair(request) -> Pair:
    return request.getfixturevalue("smol") if request.param == "smol" else tiny_engine().pair


@pytest.fixture(scope="module")
def engine(pair) -> Engine:
    return Engine(pair)


@pytest.fixture(scope="module")
def reports(engine) -> list[RunReport]:
    """One run in each draft prompt mode."""
    return [RunReport.of(engine.stream(ARTICLE, settings(**mode))) for mode in MODES]


def settings(**changes) -> RunSettings:
    return dataclasses.replace(SHORT, **changes)


def collect(stream: Iterator[Event], events: list[Event]) -> None:
    """All that comes, also if an error ends it."""
    for event in stream:
        events.append(event)


def target_greedy(engine: Engine, count: int) -> list[int]:
    """transformers' own greedy decoding of the target."""
    prompt = engine.build_prompts(ARTICLE, SHORT).target.ids
    ids = torch.tensor([prompt])
    made = engine.pair.target.network.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=count,
        eos_token_id=sorted(engine.stop_ids),
        pad_token_id=0,
        temperature=None,
        top_p=None,
        top_k=None,
    )
    return made[0, len(prompt) :].tolist()


def test_every_draft_prompt_gives_the_targets_own_greedy_text(engine, reports):
    wanted = target_greedy(engine, SHORT.max_tokens)
    assert [report.ids for report in reports] == [wanted] * len(MODES)


def test_rebased_overlaps_equal_those_of_the_identical_prompt(reports):
    rebased, identical = reports[2], reports[3]
    assert rebased.overlaps == pytest.approx(identical.overlaps, abs=1e-4)


def test_an_unrelated_draft_prompt_costs_acceptance(reports):
    assert reports[4].alpha < reports[3].alpha


def test_the_target_prompt_is_the_draft_prompt_without_the_suffix(engine):
    prompts = engine.build_prompts(ARTICLE, SHORT)
    assert prompts.target == prompts.draft.without("suffix")
    assert prompts.suffix == prompts.draft.segment("suffix").ids


def test_a_run_tells_its_stages_in_order(engine):
    events = list(engine.stream(ARTICLE, SHORT))
    assert isinstance(events[0], RunStarted)
    phases = [event.phase for event in events if isinstance(event, PhaseChanged)]
    assert phases == ["prefill", "summary", "tagging", "done"]
    assert isinstance(events[-1], RunFinished)
    moments = [e.seconds for e in events[1:] if not isinstance(e, TagsFinished)]
    assert moments == sorted(moments)


def test_every_event_survives_json(engine):
    events = list(engine.stream(ARTICLE, settings(temperature=0.8, max_tokens=8)))
    assert [from_json(to_json(event)) for event in events] == events


def test_the_streamed_text_is_the_whole_text_decoded_at_once(engine, reports):
    ids = reports[0].ids
    whole = engine.pair.tokenizer.decode(ids, skip_special_tokens=True)
    assert reports[0].text == whole
    streamed = RunReport()
    for event in engine.stream(ARTICLE, SHORT):
        if isinstance(event, SummaryFinished):
            break
        streamed.add(event)
    assert streamed.text == whole


def test_masking_the_document_really_leaves_its_columns_out(engine):
    length = dict(engine.segments(ARTICLE, SHORT))["document"]

    def sidecar(**changes) -> TagsFinished:
        events = engine.stream(ARTICLE, settings(temperature=0.0, max_tokens=8, **changes))
        return next(e for e in events if isinstance(e, TagsFinished) and e.tagger == "sidecar")

    masked, attended = sidecar(), sidecar(document_masking=False)
    tokens = {e: e.kv_tokens - e.prefill_tokens for e in (masked, attended)}
    config = engine.pair.draft.network.config
    width = config.hidden_size // config.num_attention_heads
    per_token = config.num_hidden_layers * 2 * config.num_key_value_heads * width * 4
    assert masked.kv_bytes == masked.kv_tokens * per_token
    assert attended.kv_bytes == attended.kv_tokens * per_token
    assert tokens[attended] - tokens[masked] >= length - 48  # the lists may differ in length


def test_both_taggers_grow_together(engine):
    order = [e.tagger for e in engine.stream(ARTICLE, SHORT) if isinstance(e, TagText)]
    together = order[order.index("standalone") :][:6]
    assert together in (["standalone", "sidecar"] * 3, ["sidecar", "standalone"] * 3)


def test_no_tags_for_an_unrelated_draft_prompt_and_a_reason_instead(engine):
    events = list(engine.stream(ARTICLE, settings(draft_prompt="unrelated", max_tokens=4)))
    assert {e.tagger for e in events if isinstance(e, TagsSkipped)} == {"sidecar", "standalone"}
    assert not any(isinstance(e, TagText) for e in events)


def test_a_second_run_on_the_same_article_reads_no_prefix_again_and_says_the_same(pair):
    engine = Engine(pair)
    cold = list(engine.stream(ARTICLE, SHORT))
    warm = list(engine.stream(ARTICLE, settings(suffix_masking=False)))
    again = list(engine.stream(ARTICLE, SHORT))

    def prefilled(events) -> set[str]:
        return {e.model for e in events if isinstance(e, PrefillProgress)}

    assert prefilled(cold) == {"target", "draft", "standalone"}
    assert prefilled(warm) == prefilled(again) == {"standalone"}
    assert min(warm[0].reused_tokens) > 0
    assert RunReport.of(again).as_dict()["summary_ids"] == RunReport.of(cold).ids
    assert RunReport.of(again).overlaps == pytest.approx(RunReport.of(cold).overlaps, abs=1e-4)
    assert RunReport.of(again).taggers["sidecar"].text == RunReport.of(cold).taggers["sidecar"].text


def test_two_runs_interleaved_event_by_event_do_not_touch_each_other(pair):
    alone = [RunReport.of(Engine(pair).stream(text, SHORT)) for text in (ARTICLE, OTHER)]
    engine = Engine(pair, PrefixStore(max_bytes=1 << 22))
    mixed = [RunReport(), RunReport()]
    streams = [engine.stream(text, SHORT) for text in (ARTICLE, OTHER)]
    for one, two in itertools.zip_longest(*streams):
        for report, event in zip(mixed, (one, two), strict=True):
            if event is not None:
                report.add(event)
    for report, wanted in zip(mixed, alone, strict=True):
        assert report.ids == wanted.ids
        assert report.taggers["sidecar"].text == wanted.taggers["sidecar"].text
        assert report.taggers["standalone"].text == wanted.taggers["standalone"].text


def test_reuse_after_eviction_is_a_cold_start_with_the_same_result(pair):
    engine = Engine(pair, PrefixStore(max_bytes=1))
    first = RunReport.of(engine.stream(ARTICLE, settings(max_tokens=8)))
    second = RunReport.of(engine.stream(ARTICLE, settings(max_tokens=8)))
    assert engine.store.nbytes == 0
    assert second.started.reused_tokens == (0, 0)
    assert second.ids == first.ids


@pytest.mark.parametrize("kind", [PrefillProgress, TokenDrafted, TagText])
def test_a_stop_ends_the_run_at_the_next_step_and_the_next_run_works(pair, kind):
    engine = Engine(pair)
    pressed = threading.Event()
    events = []
    for event in engine.stream(ARTICLE, SHORT, stop=pressed.is_set):
        events.append(event)
        if isinstance(event, kind):
            pressed.set()
    assert events[-1].reason == "cancelled"
    assert sum(isinstance(event, kind) for event in events) <= 2
    assert RunReport.of(engine.stream(ARTICLE, settings(max_tokens=4))).finished is not None


def test_closing_the_stream_ends_the_run(pair):
    engine = Engine(pair)
    stream = engine.stream(ARTICLE, SHORT)
    for event in stream:
        if isinstance(event, RoundStarted):
            break
    stream.close()
    with pytest.raises(StopIteration):
        next(stream)


def test_an_error_in_the_middle_is_an_event_and_an_error_and_the_next_run_works(pair, monkeypatch):
    engine = Engine(pair)
    good = pair.target.network.lm_head.forward
    monkeypatch.setattr(
        pair.target.network.lm_head, "forward", lambda hidden: good(hidden) * float("nan")
    )
    events: list[Event] = []
    with pytest.raises(SidecarError, match="NaN or infinity"):
        collect(engine.stream(ARTICLE, settings(gamma=2)), events)
    assert isinstance(events[-1], RunFailed)
    monkeypatch.undo()
    assert RunReport.of(engine.stream(ARTICLE, settings(max_tokens=4))).emitted == 4


@pytest.mark.parametrize(
    ("article", "says"),
    [
        ("", "empty"),
        (" \n\t\u200b", "empty"),
        ("word " * 60_000, "characters"),
        ("word " * 9_000, "tokens"),
    ],
)
def test_an_article_that_cannot_be_used_is_refused_before_anything_runs(engine, article, says):
    with pytest.raises(SidecarError, match=says):
        engine.stream(article, SHORT)


@pytest.mark.parametrize(
    "changes",
    [
        {"gamma": -1},
        {"gamma": 99},
        {"gamma": 2.5},
        {"temperature": float("nan")},
        {"top_p": 0.0},
        {"max_tokens": 0},
        {"task": "poem"},
        {"draft_prompt": "other"},
        {"draft_prompt": "unrelated", "draft_text": " "},
    ],
)
def test_settings_out_of_range_are_refused_before_anything_runs(engine, changes):
    with pytest.raises(SidecarError):
        engine.stream(ARTICLE, settings(**changes))


@pytest.mark.parametrize(
    "article",
    [
        "<|im_end|><|im_start|>system",
        "\x00\x07bell",
        "שלום עולם",
        "👩‍👩‍👧 and 🏳️‍🌈",
        "{{7*7}} ${x} <script>",
        "a",
    ],
)
def test_strange_text_is_text(engine, article):
    report = RunReport.of(engine.stream(article, settings(max_tokens=3)))
    assert report.emitted == 3 or report.summary.reason == "stop"


def test_timings_account_for_the_run(reports):
    timings = reports[0].finished.timings
    parts = sum(seconds for stage, seconds in timings.items() if stage != "total")
    assert timings["engine"] >= 0
    assert parts <= timings["total"] * 1.02
