"""One visitor's run as a stream of views: the engine's events in, the page's parts out.

`run` waits for the models in the queue, lets the engine work in its own thread, and yields a
`RunView` at most ten times a second, however fast the engine is. It ends early if the session's
`stop` is set, if the generator is closed, or at the host's time limit; the engine then stops within
one forward pass, and the next run starts only after that. A SidecarError is raised after a last
view.
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
from sidecar_core.events import Event
from sidecar_core.host.lease import Lease, mask_unexpected_errors, open_lease
from sidecar_core.host.model_host import ModelHost
from sidecar_core.host.session import Session
from sidecar_core.prompts import check_text
from sidecar_core.recording import record
from sidecar_core.scenarios import Scenario
from sidecar_core.settings import RunSettings
from sidecar_core.view.pace import UPDATES_PER_SECOND, Pace
from sidecar_core.view.render import status
from sidecar_core.view.run_view import KEPT, LiveRun, RunView

NOT_STARTED = "Stopped before the run started."

NICE = 10
"""Priority of the computing threads, on Unix's scale from 0 to 19."""

STOPPING = status("Stopping after the current step …", "busy")

MakeView = Callable[[], RunView]
"""Makes a view; making one has its cost."""


def run(
    host: ModelHost,
    session: Session,
    article: str,
    settings: RunSettings,
    scenario: Scenario | None = None,
    visitor: str | None = None,
) -> Iterator[RunView]:
    """Views of one run, the last one with `running` false. Raises SidecarError (see above).

    `visitor` identifies who asks: each visitor has at most one run in progress or queued.
    """
    for make_view in follow(host, session, article, settings, scenario, visitor):
        yield make_view()


def follow(
    host: ModelHost,
    session: Session,
    article: str,
    settings: RunSettings,
    scenario: Scenario | None = None,
    visitor: str | None = None,
) -> Iterator[MakeView]:
    """The same run for callers that may skip views: yields functions that make them."""
    with host.monitor.open("run") as monitored:
        checked = check_text(article)
        settings.validate()
        with open_lease(host, session, monitored, visitor) as lease:
            session.recording = None  # until the run that is shown now has ended
            session.shown = checked.key
            live = LiveRun(checked, settings, session.on(checked.key), scenario)
            lease.figures(live.report)
            try:
                with mask_unexpected_errors("run"):
                    yield from _run(lease, live, session)
            except SidecarError as error:
                yield partial(live.view, status(str(error), "error"), running=False)
                raise


def _run(lease: Lease, live: LiveRun, session: Session) -> Iterator[MakeView]:
    article = live.article
    assert article is not None
    for line in lease.wait():
        yield partial(live.view, line)
    if lease.engine is None:
        yield partial(live.view, status(NOT_STARTED, "done"), running=False)
        return
    events = lease.engine.stream(article, live.settings, lease.limit)
    lease.begin()
    worker = _Worker(events, lease)
    yield live.view
    yield from _views(live, worker, lease)
    live.report.timed_out = lease.limit.over
    scenario = live.scenario.key if live.scenario else ""
    started = live.report.started is not None
    recording = record(live.events, scenario, live.comparison()) if started else None
    session.keep(live.record(session.next_number(article.key)), recording)
    timed_out = live.report.ending == "timed_out"
    last = status(f"{lease.limit.message} {KEPT}", "done") if timed_out else None
    yield partial(live.view, last, running=False, records=session.on(article.key))


class _Worker:
    """Takes the engine's events in a thread; `queue` ends with None or the exception.

    The models are released when the engine's last forward pass is over.
    """

    def __init__(self, events: Iterator[Event], lease: Lease) -> None:
        self.queue: queue.SimpleQueue[Event | Exception | None] = queue.SimpleQueue()
        self._events, self._lease = events, lease
        # The copied context tells ZeroGPU whose request this is.
        work = copy_context().run
        thread = threading.Thread(target=work, args=(self._work,), name="run", daemon=True)
        lease.keep()
        try:
            thread.start()
        except RuntimeError:  # the system has no thread left
            lease.release()
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
            self._lease.release()
            self.queue.put(end)


def yield_to_the_page() -> None:
    """Lower the priority of this thread, and of those that torch starts for it, so that pages still
    open quickly while a run uses every core."""
    if sys.platform == "linux":  # where threads have priorities of their own
        thread = (os.PRIO_PROCESS, threading.get_native_id())
        with contextlib.suppress(OSError):
            os.setpriority(*thread, max(NICE, os.getpriority(*thread)))


def _views(live: LiveRun, worker: _Worker, lease: Lease) -> Iterator[MakeView]:
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
            yield partial(live.view, STOPPING if lease.stop.is_set() else None)
            changed, quiet_since = False, time.monotonic()
