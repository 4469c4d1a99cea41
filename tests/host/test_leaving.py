"""Stop, and tabs that are closed: whatever goes on, the models are free one forward pass later."""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sidecar_core.decoding.engine import Engine
from sidecar_core.events import Event, PhaseChanged, RunFinished
from sidecar_core.experiments.alpha.conditions import ABOUT, choose
from sidecar_core.experiments.alpha.measure import measure
from sidecar_core.experiments.corpus import Document
from sidecar_core.experiments.leak.report import LeakSettings
from sidecar_core.experiments.leak.sampling import leak_test
from sidecar_core.experiments.records import InMemory
from sidecar_core.host.model_host import ModelHost
from sidecar_core.host.session import Session
from sidecar_core.page import run as live
from sidecar_core.settings import RunSettings
from sidecar_core.tasks import HASHTAGS
from sidecar_core.view import run_view
from tests.faults import before_each_pass
from tests.hosts import ready_host, until
from tests.runs import one_round, started, whole_run
from tests.served import Served
from tests.tiny_pair import tiny_engine

ARTICLE = "The council voted on Tuesday to replace the boilers of the old quarter. " * 2
SETTINGS = RunSettings(max_tokens=10, gamma=3)
BRIEF = dataclasses.replace(HASHTAGS, max_tokens=2)

Work = Callable[[Engine, Callable[[], bool]], Iterator[Any]]


@contextlib.contextmanager
def each_pass(engine: Engine, action: Callable[[int, str], None]) -> Iterator[None]:
    """Calls `action` with the number of each pass of either model, and the model's role."""
    count = 0

    def of(role: str) -> Callable[[int], None]:
        def hook(_: int) -> None:
            nonlocal count
            count += 1
            action(count, role)

        return hook

    with (
        before_each_pass(engine.pair.target, of("target")),
        before_each_pass(engine.pair.draft, of("draft")),
    ):
        yield


def passes(work: Work) -> int:
    """How many passes the work takes where nobody stops it."""
    total = 0

    def count(number: int, _: str) -> None:
        nonlocal total
        total = number

    engine = tiny_engine()
    with each_pass(engine, count):
        for _ in work(engine, lambda: False):
            pass
    return total


def passes_after_a_stop_at(work: Work, place: int) -> int:
    """A Stop comes while pass number `place` is under way: how many begin after it."""
    engine, stop, total = tiny_engine(), threading.Event(), 0

    def hook(number: int, _: str) -> None:
        nonlocal total
        total = number
        if number == place:
            stop.set()

    with each_pass(engine, hook):
        for _ in work(engine, stop.is_set):
            pass
    return total - place


def run(engine: Engine, stop: Callable[[], bool]) -> Iterator[Any]:
    return engine.stream(ARTICLE, SETTINGS, stop)


def visible(engine: Engine, stop: Callable[[], bool]) -> Iterator[Any]:
    settings = RunSettings(max_tokens=6, suffix_masking=False, document_masking=False)
    return engine.stream(ARTICLE, settings, stop)


def identical(engine: Engine, stop: Callable[[], bool]) -> Iterator[Any]:
    return engine.stream(ARTICLE, RunSettings(max_tokens=6, draft_prompt="identical"), stop)


def alpha_lab(engine: Engine, stop: Callable[[], bool]) -> Iterator[Any]:
    chosen = choose(list(ABOUT), engine, HASHTAGS)
    documents = [Document("one", ARTICLE)]
    return measure(engine, documents, chosen, max_tokens=10, records=InMemory(), stop=stop)


def leak_lab(engine: Engine, stop: Callable[[], bool]) -> Iterator[Any]:
    document = Document("one", ARTICLE)
    return leak_test(engine, document, LeakSettings(samples=2), records=InMemory(), stop=stop)


def short(engine: Engine, stop: Callable[[], bool]) -> Iterator[Any]:
    """So few passes that each of them can be tried."""
    return engine.stream("One.", RunSettings(max_tokens=2, gamma=1), stop, task=BRIEF)


def short_alpha(engine: Engine, stop: Callable[[], bool]) -> Iterator[Any]:
    chosen = choose(["visible", "translation", "unrelated"], engine, HASHTAGS)
    documents = [Document("one", "One.")]
    return measure(engine, documents, chosen, max_tokens=2, records=InMemory(), stop=stop)


def recomputed(engine: Engine, stop: Callable[[], bool]) -> Iterator[Any]:
    settings = LeakSettings(samples=1, conditions=("recomputed",))
    return leak_test(engine, Document("one", ARTICLE), settings, summary="One.", stop=stop)


def masked(engine: Engine, stop: Callable[[], bool]) -> Iterator[Any]:
    settings = LeakSettings(samples=1, conditions=("masked",))
    return leak_test(engine, Document("one", ARTICLE), settings, summary="One.", stop=stop)


def standalone(engine: Engine, stop: Callable[[], bool]) -> Iterator[Any]:
    settings = LeakSettings(samples=1, conditions=("standalone",))
    return leak_test(engine, Document("one", ARTICLE), settings, summary=ARTICLE, stop=stop)


WORKS = [
    *(run, visible, identical, alpha_lab, leak_lab),
    *(short, short_alpha, masked, recomputed, standalone),
]


@pytest.mark.slow
@pytest.mark.parametrize("work", WORKS)
def test_a_stop_during_any_pass_lets_at_most_one_more_begin(work: Work) -> None:
    total = passes(work)
    places = {*range(1, min(total, 16)), *range(1, total, max(1, total // 25)), total - 1}
    late = {place: after for place in places if (after := passes_after_a_stop_at(work, place)) > 1}
    assert late == {}


@pytest.fixture
def host() -> ModelHost:
    return ready_host(tiny_engine())


STAGES = {"prefill": "target", "drafting": "draft", "verification": "target", "tagging": "draft"}


def stage_of(role: str, phase: str) -> str:
    if phase == "summary":
        return "drafting" if role == "draft" else "verification"
    return phase


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("way", ["stop", "close", "gone"])
def test_leaving_at_any_stage_frees_the_models_and_the_session(
    host: ModelHost, stage: str, way: str
) -> None:
    engine: Any = host.engine()
    session, phase, after = Session(), "", 0
    reached, go_on = threading.Event(), threading.Event()
    stream = engine.stream

    def watched(*arguments: Any) -> Iterator[Any]:
        nonlocal phase
        for event in stream(*arguments):
            if isinstance(event, PhaseChanged):
                phase = event.phase
            yield event

    def hook(_: int, role: str) -> None:
        nonlocal after
        if reached.is_set():
            after += 1
        elif stage_of(role, phase) == stage:
            reached.set()
            go_on.wait(30)  # the pass under way, as long as the test needs

    engine.stream = watched
    with each_pass(engine, hook):
        views: Any = live.run(host, session, ARTICLE, SETTINGS, visitor="ann")
        for _ in views:
            if reached.is_set():
                break
        if way == "stop":
            session.stop.set()
        elif way == "gone":
            host.queue.visitor_left("ann")
        else:
            views.close()
        go_on.set()
        last = list(views)
        until(lambda: len(host.queue) == 0)
        until(lambda: not session.busy.locked())
    assert after <= 1
    if way != "close":
        assert last[-1].status["message"] == run_view.STOPPED
    engine.stream = stream
    assert list(live.run(host, session, ARTICLE, SETTINGS))[-1].status["kind"] == "done"


@pytest.mark.parametrize("way", ["stop", "close", "gone"])
def test_leaving_while_others_are_at_the_models_gives_the_place_up(
    host: ModelHost, way: str
) -> None:
    first, session = host.queue.enter(), Session()
    views: Any = live.run(host, session, ARTICLE, SETTINGS, visitor="ann")
    next(views)
    assert len(host.queue) == 2
    {
        "stop": session.stop.set,
        "close": views.close,
        "gone": lambda: host.queue.visitor_left("ann"),
    }[way]()
    list(views)
    assert len(host.queue) == 1
    assert not session.busy.locked()
    host.queue.leave(first)


@pytest.mark.parametrize("way", ["stop", "close"])
def test_leaving_while_the_models_are_loaded_gives_the_place_up(way: str) -> None:
    ready = threading.Event()
    host = ModelHost(lambda progress: (ready.wait(30), (tiny_engine(), "tiny"))[1])
    session = Session()
    views: Any = live.run(host, session, ARTICLE, SETTINGS)
    next(views)
    (session.stop.set if way == "stop" else views.close)()
    list(views)
    assert len(host.queue) == 0
    assert not session.busy.locked()
    ready.set()


def test_a_stop_keeps_what_is_written_and_the_events_say_cancelled(host: ModelHost) -> None:
    engine: Any = host.engine()
    stop = threading.Event()
    events = []
    for event in engine.stream(ARTICLE, SETTINGS, stop.is_set):
        events.append(event)
        if isinstance(event, PhaseChanged) and event.phase == "tagging":
            stop.set()
    assert isinstance(events[-1], RunFinished)
    assert events[-1].reason == "cancelled"


def endless(settings: RunSettings) -> list[Event]:
    """Minutes of rounds."""
    rounds = (event for n in range(2000) for event in one_round(n, [("a", 1.0)]))
    return [started(settings), *rounds]


@pytest.mark.browser
def test_a_tab_that_is_closed_ends_its_run(visit: Any, served: Served) -> None:
    served.engine.events = endless
    served.engine.pause = 0.05
    tab = visit(served.url)
    tab.begin()
    until(lambda: served.engine.active == 1)
    tab.page.close()
    until(lambda: served.engine.active == 0)  # the run itself would take minutes
    until(lambda: len(served.host.queue) == 0)
    served.engine.events = whole_run
    visit(served.url).run()


@pytest.mark.browser
def test_a_tab_that_is_closed_while_it_waits_gives_its_place_up(visit: Any, served: Served) -> None:
    first = served.host.queue.enter()
    tab = visit(served.url)
    tab.begin()
    tab.page.wait_for_selector("text=Queued: position 1")
    tab.page.close()
    until(lambda: len(served.host.queue) == 1)
    served.host.queue.leave(first)
    assert served.engine.calls == 0


CLIENT = """
import sys
from gradio_client import Client
Client(sys.argv[1], verbose=False).predict("The plant closed.", api_name="/summarise")
"""


def test_a_program_that_is_killed_ends_its_run(served: Served) -> None:
    served.engine.events = endless
    served.engine.pause = 0.05
    program = subprocess.Popen([sys.executable, "-c", CLIENT, served.url])
    until(lambda: served.engine.active == 1)
    program.kill()
    program.wait()
    until(lambda: served.engine.active == 0)  # the run itself would take minutes
    until(lambda: len(served.host.queue) == 0)
