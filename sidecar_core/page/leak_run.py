"""One leak test on the page as a stream of views: samples in, what the page shows out.

A view comes at most ten times a second. Between two conditions other visitors get their turn at
the models. Stop, and a tab that closes, end the test within one forward pass; what was sampled
until then stays, in the session and on the page.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from sidecar_core.errors import SidecarError
from sidecar_core.experiments.corpus import Document
from sidecar_core.experiments.leak.report import LeakReport, LeakSettings
from sidecar_core.experiments.readings import Step
from sidecar_core.experiments.records import InMemory
from sidecar_core.host.model_host import ModelHost
from sidecar_core.host.session import Tab
from sidecar_core.host.turn import Turn, in_words, open_turn
from sidecar_core.host.zero_gpu import lab_seconds, take
from sidecar_core.view.pace import CHARTS_PER_SECOND, UPDATES_PER_SECOND, Pace
from sidecar_core.view.render import status
from sidecar_core.view.tag_results import leak_view

STAYS = "What was sampled so far stays."


@dataclass(frozen=True, slots=True)
class View:
    """What a leak test changes on the page; `result` is None where it stays as it is."""

    status: dict[str, str]
    result: str | None
    running: bool


class TagLabSession(Tab):
    """State of one browser tab's tag lab.

    `records` are the summaries that this tab had written (in memory only), `latest` is the test
    shown.
    """

    def __init__(self) -> None:
        super().__init__()
        self.records = InMemory()
        self.latest: LeakReport | None = None


def run(
    host: ModelHost,
    session: TagLabSession,
    document: Document,
    settings: LeakSettings,
    summary: str | None = None,
    visitor: str | None = None,
) -> Iterator[View]:
    """Views of one leak test, the last one with `running` false. Raises SidecarError."""
    with host.watch.open("leak") as watched:
        settings = settings.validate()
        with open_turn(host, session, watched, visitor) as turn:
            report = session.latest = LeakReport(settings.watch)
            try:
                line = status("The models get ready.", "busy")
                yield View(line, leak_view(report, settings), True)
                with in_words("leak"):
                    yield from _sampled(turn, session, document, settings, summary, report)
                line = status(turn.ending(STAYS) or _ending(report), "done")
                yield View(line, leak_view(report, settings), False)
            except SidecarError as error:
                yield View(status(str(error), "error"), leak_view(report, settings), False)
                raise


def _sampled(
    turn: Turn,
    session: TagLabSession,
    document: Document,
    settings: LeakSettings,
    summary: str | None,
    report: LeakReport,
) -> Iterator[View]:
    from sidecar_core.experiments.leak.sampling import leak_test  # here: it comes with PyTorch

    views, results = Pace(UPDATES_PER_SECOND), Pace(CHARTS_PER_SECOND)
    for line in turn.wait():
        yield View(line, None, True)
    if turn.engine is None:
        return
    turn.begin()
    events = take(
        turn.engine,
        leak_test,
        document,
        settings,
        summary=summary,
        records=session.records,
        stop=turn.limit,
        seconds=lab_seconds(document.text, len(settings.conditions)),
    )
    with contextlib.closing(events):  # before the place at the models is given up
        for event in events:
            report.add(event)
            if isinstance(event, Step) and event.condition and not event.done:
                for line in turn.let_others_pass():
                    yield View(line, None, True)
            if isinstance(event, Step) and views.due():
                shown = leak_view(report, settings) if results.due() else None
                yield View(_status(event, settings), shown, True)


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
