"""Runs in which a model fails: what is lost, what stays, and that the next run is a good one."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch

from sidecar_core.decoding import run as run_module
from sidecar_core.decoding.cache import SegmentedCache
from sidecar_core.decoding.engine import Engine
from sidecar_core.errors import OutOfMemory, SidecarError
from sidecar_core.events import (
    DraftLost,
    Event,
    PhaseChanged,
    RoundStarted,
    RunFailed,
    TagsSkipped,
    TokenBonus,
    TokenDrafted,
)
from sidecar_core.experiments.alpha.conditions import choose
from sidecar_core.experiments.alpha.forced import prefix_cache
from sidecar_core.experiments.alpha.measure import measure
from sidecar_core.experiments.corpus import Document, Skipped
from sidecar_core.experiments.leak.report import Forced, LeakSettings
from sidecar_core.experiments.leak.sampling import leak_test
from sidecar_core.experiments.readings import Step
from sidecar_core.experiments.records import InMemory
from sidecar_core.report import RunReport
from sidecar_core.settings import RunSettings
from sidecar_core.tasks import HASHTAGS
from sidecar_core.terminal import TerminalView
from tests.faults import OUT_OF_MEMORY, before_each_pass, failing, not_finite
from tests.tiny_pair import tiny_engine

ARTICLE = "The council voted on Tuesday to replace the boilers of the old quarter. " * 3
SETTINGS = RunSettings(max_tokens=24, gamma=3)
BROKEN = RuntimeError("the kernel gave up")


@pytest.fixture
def engine() -> Engine:
    return tiny_engine()


@pytest.fixture
def whole() -> RunReport:
    """The same run where nothing fails."""
    return RunReport.of(tiny_engine().stream(ARTICLE, SETTINGS))


def passes_before(engine: Engine, model: Any, phase: str) -> int:
    """How many passes `model` makes before `phase` begins."""
    made = 0

    def count(number: int) -> None:
        nonlocal made
        made = number

    with before_each_pass(model, count):
        for event in engine.stream(ARTICLE, SETTINGS):
            if isinstance(event, PhaseChanged) and event.phase == phase:
                break
    engine.store.clear()
    return made


def collect(stream: Iterator[Event]) -> tuple[list[Event], Exception | None]:
    """All events, and what ended them."""
    events: list[Event] = []
    try:
        for event in stream:
            events.append(event)
    except Exception as error:
        return events, error
    return events, None


def fault_of_draft(engine: Engine, kind: str, first: int) -> AbstractContextManager[None]:
    draft = engine.pair.draft
    if kind == "exception":
        return before_each_pass(draft, failing(first, BROKEN))
    return not_finite(draft, first, float(kind))


@pytest.mark.parametrize("kind", ["exception", "nan", "inf"])
@pytest.mark.parametrize("drafted", [0, 1, 2, 7])
def test_without_its_draft_the_target_goes_on_to_the_same_summary(engine, whole, kind, drafted):
    before = passes_before(engine, engine.pair.draft, "summary")
    with fault_of_draft(engine, kind, before + drafted + 1):
        events, error = collect(engine.stream(ARTICLE, SETTINGS))
    assert error is None
    report = RunReport.of(events)
    assert report.ids == whole.ids
    assert report.summary.reason == whole.summary.reason
    assert report.drafted == drafted
    lost = next(n for n, e in enumerate(events) if isinstance(e, DraftLost))
    behind = events[lost + 1 :]
    assert not any(isinstance(e, TokenDrafted | DraftLost) for e in behind)
    assert {e.gamma for e in behind if isinstance(e, RoundStarted)} == {0}
    assert any(isinstance(e, TokenBonus) for e in behind)
    assert report.finished.reason == whole.finished.reason


def test_a_draft_that_fails_while_it_reads_is_left_behind_too(engine, whole):
    with before_each_pass(engine.pair.draft, failing(2, BROKEN)):
        events, error = collect(engine.stream(ARTICLE, SETTINGS))
    report = RunReport.of(events)
    assert error is None
    assert report.ids == whole.ids
    assert report.drafted == 0
    assert "RuntimeError" in report.draft_lost


def test_tags_of_a_lost_draft_are_skipped_with_a_reason(engine):
    before = passes_before(engine, engine.pair.draft, "summary")
    with before_each_pass(engine.pair.draft, failing(before + 2, BROKEN)):
        report = RunReport.of(engine.stream(ARTICLE, SETTINGS))
    assert report.taggers["sidecar"].skipped == run_module.DRAFT_LOST
    assert "RuntimeError" in report.taggers["standalone"].skipped


def test_the_standalone_tagger_works_where_the_draft_failed_only_once(engine, whole):
    before = passes_before(engine, engine.pair.draft, "summary")

    def once(number: int) -> None:
        if number == before + 2:
            raise BROKEN

    with before_each_pass(engine.pair.draft, once):
        report = RunReport.of(engine.stream(ARTICLE, SETTINGS))
    assert report.taggers["sidecar"].skipped
    assert report.taggers["standalone"].finished.text == whole.taggers["standalone"].finished.text


def test_a_tagger_that_fails_in_the_middle_leaves_summary_and_run(engine, whole):
    before = passes_before(engine, engine.pair.draft, "tagging")
    with before_each_pass(engine.pair.draft, failing(before + 5, BROKEN)):
        events, error = collect(engine.stream(ARTICLE, SETTINGS))
    assert error is None
    report = RunReport.of(events)
    assert report.ids == whole.ids
    assert {e.tagger for e in events if isinstance(e, TagsSkipped)} == {"sidecar", "standalone"}
    assert report.draft_lost is None


def test_a_terminal_says_that_the_draft_is_lost(engine):
    out, err = io.StringIO(), io.StringIO()
    view = TerminalView(out, err)
    with before_each_pass(engine.pair.draft, failing(2, BROKEN)):
        for event in engine.stream(ARTICLE, SETTINGS):
            view.show(event)
    assert "The draft failed" in err.getvalue()
    assert "The target continues alone" in err.getvalue()


def test_a_lost_draft_is_in_the_result_and_a_good_one_is_not(engine, whole):
    with before_each_pass(engine.pair.draft, failing(2, BROKEN)):
        report = RunReport.of(engine.stream(ARTICLE, SETTINGS))
    assert report.as_dict()["draft_lost"] == report.draft_lost
    assert "draft_lost" not in whole.as_dict()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("place", [1, 2, "summary", "later"])
def test_numbers_of_the_target_that_are_not_finite_never_become_a_token(
    engine, whole, value, place
):
    target = engine.pair.target
    if isinstance(place, str):
        later = {"summary": 1, "later": 4}[place]
        place = passes_before(engine, target, "summary") + later
    with not_finite(target, place, value):
        events, error = collect(engine.stream(ARTICLE, SETTINGS))
    assert isinstance(error, SidecarError)
    assert "NaN or infinity" in str(error)
    assert isinstance(events[-1], RunFailed)
    assert RunReport.of(events).ids == whole.ids[: RunReport.of(events).emitted]
    assert engine.store.nbytes == 0
    assert RunReport.of(engine.stream(ARTICLE, SETTINGS)).ids == whole.ids


@pytest.mark.parametrize("what", OUT_OF_MEMORY, ids=lambda e: f"{type(e).__name__}-{str(e)[:12]}")
@pytest.mark.parametrize(
    ("stage", "role"),
    [("prefill", "target"), ("prefill", "draft"), ("summary", "target"), ("tagging", "draft")],
)
def test_out_of_memory_says_what_to_do_and_lets_everything_go(engine, whole, what, stage, role):
    model = getattr(engine.pair, role)
    RunReport.of(engine.stream("Something else that is kept in memory.", SETTINGS))
    kept = engine.store.nbytes
    first = 2
    if stage != "prefill":
        probe = tiny_engine()
        first = passes_before(probe, getattr(probe.pair, role), stage) + 2
    with before_each_pass(model, failing(first, what)):
        events, error = collect(engine.stream(ARTICLE, SETTINGS))
    assert isinstance(error, OutOfMemory)
    assert "shorter article" in str(error)
    assert events[-1] == RunFailed(str(error), events[-1].seconds)
    assert kept > 0
    assert engine.store.nbytes == 0
    assert RunReport.of(engine.stream(ARTICLE, SETTINGS)).ids == whole.ids


def test_memory_that_runs_out_between_two_passes_is_told_likewise(engine, monkeypatch):
    def fork(self: SegmentedCache) -> SegmentedCache:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 B")

    monkeypatch.setattr(SegmentedCache, "fork", fork)
    events, error = collect(engine.stream(ARTICLE, SETTINGS))
    assert isinstance(error, OutOfMemory)
    assert isinstance(events[-1], RunFailed)
    assert engine.store.nbytes == 0


def test_an_illegal_access_is_not_taken_for_a_lack_of_memory(engine):
    broken = RuntimeError("CUDA error: an illegal memory access was encountered")
    with before_each_pass(engine.pair.target, failing(3, broken)):
        _, error = collect(engine.stream(ARTICLE, SETTINGS))
    assert isinstance(error, SidecarError)
    assert not isinstance(error, OutOfMemory)
    assert "RuntimeError" in str(error)


@pytest.mark.parametrize("at", [1, 3, 9, 12])
def test_nothing_of_a_failed_run_is_kept(engine, whole, at):
    with before_each_pass(engine.pair.target, failing(at, BROKEN)):
        _, error = collect(engine.stream(ARTICLE, SETTINGS))
    assert error is not None
    assert engine.store.nbytes == 0
    again = RunReport.of(engine.stream(ARTICLE, SETTINGS))
    assert again.started.reused_tokens == (0, 0)
    assert again.ids == whole.ids


def test_the_columns_of_a_lost_draft_are_not_kept(engine, whole):
    before = passes_before(engine, engine.pair.draft, "summary")
    with before_each_pass(engine.pair.draft, failing(before + 2, BROKEN)):
        RunReport.of(engine.stream(ARTICLE, SETTINGS))
    again = RunReport.of(engine.stream(ARTICLE, SETTINGS))
    assert again.started.reused_tokens[0] > 0
    assert again.started.reused_tokens[1] == 0
    assert again.overlaps == pytest.approx(whole.overlaps, abs=1e-4)


def test_an_unexpected_exception_passes_and_the_next_run_works(engine, whole, monkeypatch):
    def breaks(*_: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "speculate", breaks)
        _, error = collect(engine.stream(ARTICLE, SETTINGS))
    assert isinstance(error, ZeroDivisionError)
    assert engine.store.nbytes == 0
    assert RunReport.of(engine.stream(ARTICLE, SETTINGS)).ids == whole.ids


def test_an_article_on_which_a_model_fails_is_skipped_and_the_next_is_measured(engine):
    documents = [Document("one", ARTICLE), Document("two", "The old quarter is cold.")]
    broken = True

    def on_first(number: int) -> None:
        if broken:
            raise BROKEN

    found = []
    with before_each_pass(engine.pair.draft, on_first):
        for item in measure(engine, documents, (), max_tokens=8, records=InMemory()):
            found.append(item)
            broken = broken and not isinstance(item, Skipped)
    assert [s.where for s in found if isinstance(s, Skipped)] == ["one"]
    assert found[-1].id == "two"


@pytest.mark.parametrize("work", [measure, leak_test])
def test_labs_let_everything_go_where_memory_runs_out(engine, work):
    """While the draft reads the summary, behind what the engine's own runs guard."""
    lacks_memory = False

    def action(number: int) -> None:
        if lacks_memory:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    conditions = choose(["masked"], engine, HASHTAGS)
    items = {
        measure: lambda: measure(engine, [Document("one", ARTICLE)], conditions, max_tokens=8),
        leak_test: lambda: leak_test(engine, Document("one", ARTICLE), LeakSettings(samples=2)),
    }[work]()
    kept, told = 0, ""
    with before_each_pass(engine.pair.draft, action):
        try:
            for item in items:
                stage = item.stage if isinstance(item, Step) else ""
                if isinstance(item, Forced) or stage == "reading the summary (target)":
                    kept, lacks_memory = engine.store.nbytes, True
                told = item.why if isinstance(item, Skipped) else told
        except OutOfMemory as error:
            told = str(error)
    assert "Out of memory" in told
    assert kept > 0
    assert engine.store.nbytes == 0


@pytest.mark.parametrize("role", ["target", "draft"])
def test_columns_that_are_not_finite_are_never_kept_for_others(engine, role):
    model = getattr(engine.pair, role)
    prompt = engine.build_prompts(ARTICLE, SETTINGS).draft
    reading = prefix_cache(engine, model, prompt, "reads")
    with not_finite(model, 2, float("nan")), pytest.raises(SidecarError, match="NaN or infinity"):
        list(reading)
    assert engine.store.nbytes == 0


@pytest.mark.slow
def test_faults_at_every_pass_of_a_short_run_end_it_in_words(engine):
    settings = RunSettings(max_tokens=6, gamma=2)
    total = 0

    def count(number: int) -> None:
        nonlocal total
        total = number

    with before_each_pass(engine.pair.draft, count):
        wanted = RunReport.of(engine.stream(ARTICLE, settings)).ids
    for first in itertools.chain(range(1, total + 1, 3), [total]):
        engine.store.clear()
        with before_each_pass(engine.pair.draft, failing(first, BROKEN)):
            events, error = collect(engine.stream(ARTICLE, settings))
        assert error is None
        assert RunReport.of(events).ids == wanted
