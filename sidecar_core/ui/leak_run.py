"""One leak test on the page as a stream of views: samples in, what the page shows out.

A view comes at most ten times a second. Between two conditions other visitors get their turn at
the models. Stop, and a tab that closes, end the test within one forward pass; what was sampled
until then stays, in the session and on the page.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sidecar_core.errors import SidecarError
from sidecar_core.experiments.corpus import Document
from sidecar_core.experiments.leak_report import LeakReport, LeakSettings
from sidecar_core.experiments.readings import Step
from sidecar_core.experiments.records import InMemory
from sidecar_core.ui.live import wait_for_turn
from sidecar_core.ui.model_host import ModelHost
from sidecar_core.ui.render import status
from sidecar_core.ui.tag_views import leak_view
from sidecar_core.ui.throttle import CHARTS_PER_SECOND, UPDATES_PER_SECOND, Pace
from sidecar_core.ui.watch import Watched
from sidecar_core.ui.zero_gpu import lab_seconds, take

STOPPED = "Stopped. What was sampled so far stays."


@dataclass(frozen=True, slots=True)
class View:
    """What a leak test changes on the page; `result` is None where it stays as it is."""

    status: dict[str, str]
    result: str | None
    running: bool


class TagLabSession:
    """State of one browser tab's tag lab. A copy is a new, empty one.

    `records` are the summaries that this tab had written (in memory only), `latest` is the test
    shown.
    """

    def __init__(self) -> None:
        self.records = InMemory()
        self.latest: LeakReport | None = None
        self.stop = threading.Event()
        self.busy = threading.Lock()

    def __deepcopy__(self, memo: dict[int, Any]) -> TagLabSession:
        return TagLabSession()

    def close(self) -> None:
        """The tab is gone: whatever still runs for it should end."""
        self.stop.set()


def run(
    host: ModelHost,
    session: TagLabSession,
    document: Document,
    settings: LeakSettings,
    summary: str | None = None,
) -> Iterator[View]:
    """Views of one leak test, the last one with `running` false. Raises SidecarError."""
    with host.watch.open("leak") as watched:
        yield from _run(host, session, document, settings, summary, watched)


def _run(
    host: ModelHost,
    session: TagLabSession,
    document: Document,
    settings: LeakSettings,
    summary: str | None,
    watched: Watched,
) -> Iterator[View]:
    settings.validate()
    if not session.busy.acquire(timeout=5):
        raise SidecarError("A leak test is under way in this tab already; stop it first.")
    stop = session.stop = threading.Event()
    watched.follow(stop)
    report = session.latest = LeakReport(settings.watch)
    try:
        yield View(status("The models get ready.", "busy"), leak_view(report, settings), True)
        yield from _sampled(host, session, document, settings, summary, report, watched)
        watched.stopped = stop.is_set()
        words = STOPPED if watched.stopped else _ending(report)
        yield View(status(words, "done"), leak_view(report, settings), False)
    except SidecarError as error:
        yield View(status(str(error), "error"), leak_view(report, settings), False)
        raise
    finally:
        stop.set()
        session.busy.release()


def _sampled(
    host: ModelHost,
    session: TagLabSession,
    document: Document,
    settings: LeakSettings,
    summary: str | None,
    report: LeakReport,
    watched: Watched,
) -> Iterator[View]:
    from sidecar_core.experiments.leak import leak_test  # here: it comes with PyTorch

    stop = watched.stop
    views, results = Pace(UPDATES_PER_SECOND), Pace(CHARTS_PER_SECOND)
    ticket = host.turnstile.enter()
    try:
        engine: Any = None
        for engine, line in wait_for_turn(host, ticket, stop):
            if engine is None:
                yield View(line, None, True)
        if engine is None:
            return
        watched.begin()
        events = take(
            engine,
            leak_test,
            document,
            settings,
            summary=summary,
            records=session.records,
            stop=stop.is_set,
            seconds=lab_seconds(document.text, len(settings.conditions)),
        )
        for event in events:
            report.add(event)
            if isinstance(event, Step) and event.condition and not event.done:
                host.turnstile.leave(ticket)
                ticket = host.turnstile.enter()
                for _, line in wait_for_turn(host, ticket, stop):
                    if line:
                        yield View(line, None, True)
            if isinstance(event, Step) and views.due():
                shown = leak_view(report, settings) if results.due() else None
                yield View(_status(event, settings), shown, True)
    finally:
        host.turnstile.leave(ticket)


def _status(step: Step, settings: LeakSettings) -> dict[str, str]:
    """The stage in words; while samples are written, how far all conditions are."""
    share = step.done / step.total if step.total else 0.0
    if step.condition:
        place = settings.conditions.index(step.condition)
        share = (place + share) / len(settings.conditions)
    return status(f"{step.stage[0].upper()}{step.stage[1:]}.", "busy", share)


def _ending(report: LeakReport) -> str:
    total = sum(map(len, report.lists.values()))
    return f"Done: {total} tag lists under {len(report.lists)} conditions."
