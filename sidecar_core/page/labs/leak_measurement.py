"""A leak test of the tag lab: one summary, many tag lists under several conditions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from sidecar_core.experiments.corpus import Document
from sidecar_core.experiments.leak.report import LeakReport, LeakSettings
from sidecar_core.experiments.readings import Step
from sidecar_core.experiments.records import InMemory
from sidecar_core.host.monitor import Kind
from sidecar_core.host.zero_gpu import lab_seconds, take
from sidecar_core.page.labs.lab_run import LabSession, Pause
from sidecar_core.view.labs.tag_results import leak_view
from sidecar_core.view.render import status


@dataclass(slots=True)
class LeakMeasurement:
    """Fold of `leak_test`'s events. `summary` is the text to be tagged, None if the target is to
    write it."""

    document: Document
    settings: LeakSettings
    summary: str | None = None
    records: InMemory = field(default_factory=InMemory)
    report: LeakReport = field(init=False)
    step: Step | None = None
    kind: Kind = "leak"

    def __post_init__(self) -> None:
        self.report = LeakReport(self.settings.watch)

    def check(self) -> None:
        self.settings = self.settings.validate()

    def work(self, engine: Any, stop: Callable[[], bool]) -> Generator[Any, None, None]:
        from sidecar_core.experiments.leak.sampling import leak_test  # here: it imports PyTorch

        events = take(
            engine,
            leak_test,
            self.document,
            self.settings,
            summary=self.summary,
            records=self.records,
            stop=stop,
            seconds=lab_seconds(len(self.document.text), len(self.settings.conditions)),
        )
        with contextlib.closing(events):
            for event in events:
                yield event
                if isinstance(event, Step) and event.condition and not event.done:
                    yield Pause.LET_OTHERS_PASS

    def add(self, item: Any) -> None:
        self.report.add(item)
        if isinstance(item, Step):
            self.step = item

    def status(self) -> dict[str, str]:
        step = self.step
        if step is None:
            return status("Preparing the models.", "busy")
        share = step.done / step.total if step.total else 0.0
        if step.condition:
            place = self.settings.conditions.index(step.condition)
            share = (place + share) / len(self.settings.conditions)
        return status(f"{step.stage[0].upper()}{step.stage[1:]}.", "busy", share)

    def result(self, *, running: bool) -> str:
        return leak_view(self.report, self.settings)

    def conclusion(self) -> str:
        total = sum(map(len, self.report.lists.values()))
        return f"Done: {total} tag lists under {len(self.report.lists)} conditions."


class LeakLabSession(LabSession[LeakMeasurement]):
    """State of one browser tab's tag lab."""
