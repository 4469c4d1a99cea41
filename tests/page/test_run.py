"""One run as a stream of views, over a scripted engine."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from sidecar_core import prompts
from sidecar_core.errors import SidecarError
from sidecar_core.events import DraftLost, Event, LoadProgress, SummaryFinished, TokenRejected
from sidecar_core.host import session as session_module
from sidecar_core.host.model_host import ModelHost
from sidecar_core.host.session import Session
from sidecar_core.page import run as live
from sidecar_core.report import RunReport
from sidecar_core.scenarios import BY_KEY
from sidecar_core.settings import MAX_ARTICLE_CHARS, RunSettings
from sidecar_core.view import run_view
from sidecar_core.view.render import tiles
from sidecar_core.view.run_view import RunView
from tests.hosts import host_of, until
from tests.runs import ScriptedEngine, one_round, started, whole_run
from tests.tiny_pair import tiny_engine

ARTICLE = "The plant closed."


def views(
    engine: ScriptedEngine, session: Session | None = None, **options: object
) -> list[RunView]:
    settings = options.pop("settings", RunSettings())
    return list(
        live.run(host_of(engine), session or Session(), ARTICLE, settings, **options)  # type: ignore[arg-type]
    )


def test_the_last_view_shows_the_events_final_state() -> None:
    last = views(ScriptedEngine())[-1]
    report = RunReport.of(whole_run())
    assert not last.running
    assert last.tiles == tiles(report) | {"alpha_bars": last.tiles["alpha_bars"]}
    assert "#plant" in last.sidecar["list"]
    assert "#closed" in last.standalone["list"]
    assert last.status["kind"] == "done"


def test_updates_are_at_most_ten_a_second_whatever_the_engine_does() -> None:
    flood = ScriptedEngine(
        lambda settings: [started(), *(e for n in range(400) for e in one_round(n, [("a", 1.0)]))]
    )
    flood.pause = 0.0005
    begin = time.monotonic()
    seen = views(flood)
    seconds = time.monotonic() - begin
    assert len(seen) <= 10 * seconds + 4
    assert seen[-1].stream["done"].count(">a<") == 400


def test_bytes_of_the_stream_are_appended_only() -> None:
    engine = ScriptedEngine()
    engine.pause = 0.03
    before = ""
    for view in views(engine):
        assert view.stream["done"].startswith(before)
        before = view.stream["done"]


def test_stop_ends_the_run_keeps_what_is_there_and_the_next_one_works() -> None:
    rounds = [event for n in range(1000) for event in one_round(n, [("The", 1.0)])]
    engine, session = ScriptedEngine(lambda settings: [started(), *rounds]), Session()
    engine.pause = 0.005
    host = host_of(engine)
    last = None
    for view in live.run(host, session, ARTICLE, RunSettings()):
        if view.stream["done"]:
            session.stop.set()
        last = view
    assert last is not None
    assert last.status["message"] == run_view.STOPPED
    assert "The" in last.stream["done"]
    assert not last.running
    engine.events = whole_run
    assert list(live.run(host, session, ARTICLE, RunSettings()))[-1].status["kind"] == "done"


def test_a_closed_tab_ends_the_engines_work() -> None:
    engine, session = ScriptedEngine(), Session()
    engine.pause = 0.05
    run: Iterator[RunView] = live.run(host_of(engine), session, ARTICLE, RunSettings())
    next(run)
    run.close()  # type: ignore[attr-defined]
    until(lambda: engine.active == 0)
    until(lambda: not session.busy.locked())


def test_a_tab_is_free_once_its_last_view_was_shown_and_the_models_before() -> None:
    host, session = host_of(ScriptedEngine()), Session()
    shown = live.run(host, session, ARTICLE, RunSettings())
    seen = next(shown)
    while "reads the prompt" not in seen.status["message"]:
        seen = next(shown)
    until(lambda: len(host.queue) == 0)  # the engine is done, the page is not
    assert session.busy.locked()
    assert not session.runs
    while seen.running:
        seen = next(shown)
    assert next(shown, None) is None
    assert not session.busy.locked()
    assert len(session.runs) == 1


def test_a_closed_tab_keeps_its_place_until_the_engines_last_step_is_over() -> None:
    engine = ScriptedEngine()
    engine.pause = 0.3
    host = host_of(engine)
    shown = live.run(host, Session(), ARTICLE, RunSettings())
    while not engine.active:
        next(shown)
    shown.close()
    steps = 0
    while True:
        held = len(host.queue)
        if not engine.active:
            break
        assert held == 1
        steps += 1
    assert steps
    until(lambda: len(host.queue) == 0)


def test_an_error_before_the_first_event_frees_everything() -> None:
    host, session = host_of(ScriptedEngine()), Session()
    with pytest.raises(SidecarError, match="too long"):
        list(live.run(host, session, "word " * 500, RunSettings()))
    assert list(live.run(host, session, ARTICLE, RunSettings()))[-1].status["kind"] == "done"


def test_an_error_in_the_middle_is_shown_and_the_next_run_works() -> None:
    engine, session = ScriptedEngine(), Session()
    engine.error = SidecarError("Out of memory; use a shorter article.")
    host = host_of(engine)
    seen = []
    with pytest.raises(SidecarError, match="shorter article"):
        seen.extend(view for view in live.run(host, session, ARTICLE, RunSettings()))
    assert seen[-1].status["kind"] == "error"
    assert not seen[-1].running
    engine.error = None
    assert list(live.run(host, session, ARTICLE, RunSettings()))[-1].status["kind"] == "done"


def no_thread(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_where_there_is_no_thread_for_a_run_place_and_tab_are_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host, session = host_of(ScriptedEngine()), Session()
    until(lambda: host.engine() is not None)
    with monkeypatch.context() as without:
        without.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(SidecarError, match="RuntimeError"):
            list(live.run(host, session, ARTICLE, RunSettings()))
    assert len(host.queue) == 0
    assert list(live.run(host, session, ARTICLE, RunSettings()))[-1].status["kind"] == "done"


def test_an_unexpected_exception_becomes_one_clear_line_without_details() -> None:
    engine = ScriptedEngine()
    engine.error = ValueError("secret path")
    with pytest.raises(SidecarError) as caught:
        views(engine)
    assert "secret" not in str(caught.value)


def test_a_lost_draft_is_told_while_the_target_goes_on_and_at_the_end() -> None:
    def events(settings: RunSettings) -> list[Event]:
        first, *rest = whole_run(settings)
        return [first, DraftLost("toy failed in its forward pass.", 0.1), *rest]

    engine = ScriptedEngine(events)
    engine.pause = 0.05
    seen = [view.status["message"] for view in views(engine)]
    assert any(line.startswith(run_view.DRAFT_LOST) and "forward pass" in line for line in seen)
    assert "the target continued alone" in seen[-1]


@pytest.mark.parametrize("article", ["", " \n\t ", "x" * (MAX_ARTICLE_CHARS + 1), 3, None, ["x"]])
def test_blank_and_huge_articles_never_reach_the_engine(article: Any) -> None:
    engine = ScriptedEngine()
    with pytest.raises(SidecarError, match="article"):
        next(live.run(host_of(engine), Session(), article, RunSettings()))
    assert engine.calls == 0


def test_settings_out_of_range_never_reach_the_engine() -> None:
    engine = ScriptedEngine()
    with pytest.raises(SidecarError, match="gamma"):
        next(live.run(host_of(engine), Session(), ARTICLE, RunSettings(gamma=99)))
    assert engine.calls == 0


def test_runs_of_many_visitors_never_overlap_and_all_are_answered() -> None:
    engine = ScriptedEngine()
    engine.pause = 0.003
    host = host_of(engine)
    results: list[RunView] = []

    def visit() -> None:
        results.append(list(live.run(host, Session(), ARTICLE, RunSettings()))[-1])

    threads = [threading.Thread(target=visit) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [view.status["kind"] for view in results] == ["done"] * 6
    assert engine.most_active == 1


def test_who_waits_is_told_and_can_stop_waiting() -> None:
    engine = ScriptedEngine()
    host = host_of(engine)
    first = host.queue.enter()
    session = Session()
    run = live.run(host, session, ARTICLE, RunSettings())
    seen = [view for view, _ in zip(run, range(2), strict=False)]
    assert seen[-1].status["message"] == "Queued: position 1."
    session.stop.set()
    assert list(run)[-1].status["message"] == live.NOT_STARTED
    assert engine.calls == 0
    host.queue.leave(first)


def test_one_visitor_holds_one_place_and_a_second_run_is_refused_in_words() -> None:
    host = host_of(ScriptedEngine())
    first = host.queue.enter("ann")
    with pytest.raises(SidecarError, match="already"):
        list(live.run(host, Session(), ARTICLE, RunSettings(), visitor="ann"))
    host.queue.leave(first)
    done = list(live.run(host, Session(), ARTICLE, RunSettings(), visitor="ann"))
    assert done[-1].status["kind"] == "done"
    assert len(host.queue) == 0


def test_a_run_that_takes_too_long_ends_like_a_stop_and_says_why() -> None:
    engine, session = ScriptedEngine(), Session()
    engine.pause = 0.1
    host = host_of(engine)
    host.max_seconds = 0.25
    last = list(live.run(host, session, ARTICLE, RunSettings()))[-1]
    assert "time limit of 0.25 s" in last.status["message"]
    assert last.status["kind"] == "done"
    assert not last.running
    assert session.runs[-1].report.ending == "timed_out"
    host.max_seconds = 60
    again = list(live.run(host, session, ARTICLE, RunSettings()))[-1]
    assert again.status["message"].startswith("Done")


def test_who_waits_in_the_line_does_not_use_up_the_time() -> None:
    engine = ScriptedEngine()
    host = host_of(engine)
    host.max_seconds = 0.4
    first = host.queue.enter()
    run = live.run(host, Session(), ARTICLE, RunSettings())
    next(run)
    time.sleep(0.6)
    host.queue.leave(first)
    assert list(run)[-1].status["message"].startswith("Done")


def test_an_engine_with_room_for_two_runs_two_at_a_time_and_no_more() -> None:
    engine = ScriptedEngine()
    engine.pause = 0.02
    engine.runs_at_once = 2  # type: ignore[attr-defined]
    host = host_of(engine)
    until(lambda: host.engine() is not None)
    runs = [
        threading.Thread(target=lambda: list(live.run(host, Session(), ARTICLE, RunSettings())))
        for _ in range(5)
    ]
    for thread in runs:
        thread.start()
    for thread in runs:
        thread.join()
    assert engine.most_active == 2
    assert len(host.queue) == 0


def test_a_run_waits_for_the_models_and_begins_by_itself() -> None:
    ready = threading.Event()
    engine = ScriptedEngine()

    def load(progress: object) -> tuple[ScriptedEngine, str]:
        progress(LoadProgress("Downloading part 3", 30, 60))  # type: ignore[operator]
        ready.wait(5)
        return engine, "scripted"

    host = ModelHost(load)
    run = live.run(host, Session(), ARTICLE, RunSettings())
    next(run)
    second = next(run)
    assert "Downloading part 3" in second.status["message"]
    assert second.status["percent"] == "50%"
    ready.set()
    assert list(run)[-1].status["kind"] == "done"


def test_models_that_cannot_be_loaded_give_one_line_and_are_tried_again() -> None:
    tries = []

    def load(progress: object) -> tuple[ScriptedEngine, str]:
        tries.append(1)
        if len(tries) == 1:
            raise SidecarError("No network and no weights here; run fetch first.")
        return ScriptedEngine(), "scripted"

    host = ModelHost(load)
    host.start()
    until(lambda: host.status().state == "failed")
    assert host.status().text.startswith("No network")
    assert list(live.run(host, Session(), ARTICLE, RunSettings()))[-1].status["kind"] == "done"


def test_a_run_does_not_wait_for_models_that_cannot_be_loaded() -> None:
    def load(progress: object) -> tuple[ScriptedEngine, str]:
        raise SidecarError("No network and no weights here; run fetch first.")

    run = live.run(ModelHost(load), Session(), ARTICLE, RunSettings())
    with pytest.raises(SidecarError, match="No network"):
        list(itertools.islice(run, 100))


def test_ended_runs_become_ghosts_and_lines_of_the_table_on_their_article_only() -> None:
    engine, session = ScriptedEngine(), Session()
    host = host_of(engine)
    list(live.run(host, session, ARTICLE, RunSettings()))
    visible = RunSettings(suffix_masking=False)
    last = list(live.run(host, session, ARTICLE, visible))[-1]
    assert "masked #1" in last.chart.to_json()
    assert last.runs.count("<tr") == 3
    other = list(live.run(host, session, "Another article.", RunSettings()))[-1]
    assert "#1" not in other.chart.to_json()
    assert other.runs.count("<tr") == 2


def test_runs_are_numbered_for_each_article_by_itself() -> None:
    host, session = host_of(ScriptedEngine()), Session()
    for article in (ARTICLE, ARTICLE, "Another article.", ARTICLE):
        list(live.run(host, session, article, RunSettings()))
    assert [record.number for record in session.runs] == [1, 2, 1, 3]


def test_two_sessions_share_nothing() -> None:
    host = host_of(ScriptedEngine())
    one = Session()
    other = copy.deepcopy(one)  # as Gradio makes each tab's of the page's first value
    list(live.run(host, one, ARTICLE, RunSettings()))
    last = list(live.run(host, other, ARTICLE, RunSettings()))[-1]
    assert "#1" not in last.chart.to_json()


def test_the_saved_run_is_its_events() -> None:
    session = Session()
    views(ScriptedEngine(), session)
    assert session.recording is not None
    assert list(session.recording.events) == whole_run()


def test_a_scenario_says_what_to_look_at_and_then_what_came_out() -> None:
    scenario = BY_KEY["identical"]
    settings = scenario.apply(RunSettings())
    seen = views(ScriptedEngine(), scenario=scenario, settings=settings)
    assert scenario.look in seen[0].note
    assert f"α is {RunReport.of(whole_run()).alpha:.3f}" in seen[-1].note


def test_a_rejected_token_stays_where_it_was_proposed() -> None:
    rejected = next(e for e in whole_run() if isinstance(e, TokenRejected))
    done = views(ScriptedEngine())[-1].stream["done"]
    assert done.index("The<") < done.index(rejected.text.strip() + "</del>") < done.index("plant<")
    assert any(isinstance(e, SummaryFinished) for e in whole_run())


@pytest.mark.skipif(sys.platform != "linux", reason="priorities of single threads are Linux's")
def test_the_models_yield_to_the_page_and_nobody_else_does() -> None:
    seen: list[int] = []

    def events(settings: RunSettings) -> list[Event]:
        seen.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        return whole_run(settings)

    before = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    views(ScriptedEngine(events))
    assert seen == [max(before, live.NICE)]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == before


def test_nobody_is_told_that_somebody_else_ran_the_article() -> None:
    def events(settings: RunSettings) -> list[Event]:
        return [dataclasses.replace(started(settings), reused_tokens=(99, 99)), *whole_run()[1:]]

    host, session = host_of(ScriptedEngine(events)), Session()
    said = []
    for _ in range(2):
        last = list(live.run(host, session, ARTICLE, RunSettings()))[-1]
        assert session.recording is not None
        reused = session.recording.started.reused_tokens
        said.append(("prefix cache hit" in last.status["message"], reused))
    assert said == [(False, (0, 0)), (True, (99, 99))]
    assert session.recording is not None
    with pytest.raises(SidecarError):
        list(live.run(host, session, "word " * 500, RunSettings()))
    assert session.recording is None


def test_half_characters_in_an_article_do_not_reach_the_page() -> None:
    host = host_of(ScriptedEngine(lambda s: whole_run(s, tag="zebra")))
    last = list(live.run(host, Session(), "A zebra \ud800 came.", RunSettings()))[-1]
    assert "zebra" in last.sidecar["list"]
    json.dumps(last.sidecar, ensure_ascii=False).encode()


def test_a_page_that_stays_open_for_days_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "MAX_RUNS", 3)
    host, session = host_of(ScriptedEngine()), Session()
    for _ in range(5):
        list(live.run(host, session, ARTICLE, RunSettings()))
    assert [run.number for run in session.runs] == [3, 4, 5]


def test_markup_in_what_came_out_of_a_scenario_is_text() -> None:
    host = host_of(ScriptedEngine(lambda s: whole_run(s, tag="<arrow>")))
    scenario = BY_KEY["document-attended"]
    settings = scenario.apply(RunSettings())
    last = list(live.run(host, Session(), "The arrow line is gone.", settings, scenario))[-1]
    assert "#&lt;arrow&gt; leaks: “arrow” is only in the document" in last.note
    assert "<arrow>" not in last.note


def test_an_article_is_cleaned_once_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    cleaned: list[str] = []
    clean = prompts.clean
    monkeypatch.setattr(prompts, "clean", lambda text: cleaned.append(text) or clean(text))
    settings = RunSettings(max_tokens=3, task="category")
    list(live.run(host_of(tiny_engine()), Session(), ARTICLE, settings))
    assert cleaned.count(ARTICLE) == 1
