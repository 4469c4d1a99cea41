"""One visitor's run as a stream of views: events in, what the page shows out.

`run` waits for the models and for its turn, lets the engine work in a thread of its own, and gives
a `RunView` at most ten times a second, whatever the engine does. It ends early when the session's
`stop` is set, the generator is closed, or the host's time limit is over; the engine then ends
within one forward pass, and only then is the next run let in. A SidecarError comes through after a
last view.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import copy_context
from functools import partial

from sidecar_core.errors import SidecarError
from sidecar_core.events import (
    Event,
)
from sidecar_core.host.model_host import ModelHost
from sidecar_core.host.session import Session
from sidecar_core.host.turn import Turn, in_words, open_turn
from sidecar_core.prompts import article_key, clean
from sidecar_core.recording import record
from sidecar_core.scenarios import Scenario
from sidecar_core.settings import MAX_ARTICLE_CHARS, RunSettings
from sidecar_core.view.pace import UPDATES_PER_SECOND, Pace
from sidecar_core.view.render import status
from sidecar_core.view.run_view import STAYS, LiveRun, RunView

NOT_BEGUN = "Stopped before it began."

NICE = 10
"""Of the threads that compute, on Unix's scale from 0 to 19."""

STOPPING = status("Stopping after this step …", "busy")


def run(
    host: ModelHost,
    session: Session,
    article: str,
    settings: RunSettings,
    scenario: Scenario | None = None,
    visitor: str | None = None,
) -> Iterator[RunView]:
    """Views of one run, the last one with `running` false. Raises SidecarError, see above.

    `visitor` names who asks: one visitor has one place at the models or in the line.
    """
    for look in follow(host, session, article, settings, scenario, visitor):
        yield look()


def follow(
    host: ModelHost,
    session: Session,
    article: str,
    settings: RunSettings,
    scenario: Scenario | None = None,
    visitor: str | None = None,
) -> Iterator[Callable[[], RunView]]:
    """The same for who may not want to look: yields what makes the view, which has its cost."""
    with host.watch.open("run") as watched:
        check_size(article)
        settings.validate()
        with open_turn(host, session, watched, visitor) as turn:
            session.recording = None  # until there is one of what is shown now
            live = LiveRun(clean(article), settings, session.on(article), scenario)
            turn.figures(live.report)
            try:
                with in_words("run"):
                    yield from _run(turn, live, session, article)
            except SidecarError as error:
                yield partial(live.view, status(str(error), "error"), running=False)
                raise


def _run(
    turn: Turn, live: LiveRun, session: Session, article: str
) -> Iterator[Callable[[], RunView]]:
    for line in turn.wait():
        yield partial(live.view, line)
    if turn.engine is None:
        yield partial(live.view, status(NOT_BEGUN, "done"), running=False)
        return
    events = turn.engine.stream(article, live.settings, turn.limit)
    turn.begin()
    worker = _Worker(events, turn)
    yield live.view
    yield from _looks(live, worker, turn)
    session.keep(live.record(session.next_number(article)))
    if live.report.started:
        key = live.scenario.key if live.scenario else ""
        session.recording = record(live.events, key)
        session.recorded = article_key(article)
    ending = status(f"{turn.limit.words} {STAYS}", "done") if turn.limit.over else None
    yield partial(live.view, ending, running=False, records=session.on(article))


def check_size(article: str) -> None:
    """Refuses what no tokenizer should have to look at. Raises SidecarError."""
    if not isinstance(article, str) or not article.strip():
        raise SidecarError("The article is empty. Paste some text or choose an example.")
    if len(article) > MAX_ARTICLE_CHARS:
        raise SidecarError(
            f"The article has {len(article):,} characters; the limit is {MAX_ARTICLE_CHARS:,}. "
            "Paste a shorter one."
        )


class _Worker:
    """Takes the engine's events in a thread; `queue` ends with None or the exception.

    The turn is over when the engine's last forward pass is.
    """

    def __init__(self, events: Iterator[Event], turn: Turn) -> None:
        self.queue: queue.SimpleQueue[Event | Exception | None] = queue.SimpleQueue()
        self._events, self._turn = events, turn
        # The copied context tells ZeroGPU whose request this is.
        work = copy_context().run
        thread = threading.Thread(target=work, args=(self._work,), name="run", daemon=True)
        turn.keep()
        try:
            thread.start()
        except RuntimeError:  # no thread to be had
            turn.release()
            raise

    def _work(self) -> None:
        yield_to_the_page()
        end: Exception | None = None
        try:
            for event in self._events:
                self.queue.put(event)
        except Exception as error:
            end = error
        finally:
            self._turn.release()
            self.queue.put(end)


def yield_to_the_page() -> None:
    """Let the page's own threads go before this one, and before those that torch starts for it, so
    that other visitors' pages open while a run keeps every core busy."""
    if sys.platform == "linux":  # where a priority can be a thread's own
        thread = (os.PRIO_PROCESS, threading.get_native_id())
        with contextlib.suppress(OSError):
            os.setpriority(*thread, max(NICE, os.getpriority(*thread)))


def _looks(live: LiveRun, worker: _Worker, turn: Turn) -> Iterator[Callable[[], RunView]]:
    pace = Pace(UPDATES_PER_SECOND)
    quiet_since = time.monotonic()
    changed = False
    while True:
        try:
            event = worker.queue.get(timeout=pace.wait() if changed else 0.5)
        except queue.Empty:
            pass
        else:
            if isinstance(event, Exception):
                raise event
            if event is None:
                return
            live.add(event)
            changed = True
        if (changed and pace.due()) or time.monotonic() - quiet_since > 0.5:
            yield partial(live.view, STOPPING if turn.stop.is_set() else None)
            changed, quiet_since = False, time.monotonic()
