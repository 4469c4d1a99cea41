"""One measurement of a lab as a stream of views: items of the experiment in, the page's parts out.

At most ten views a second. Between two parts of a measurement, queued visitors go first. Stop, or
closing the tab, ends the measurement within one forward pass; results so far are kept, in the
session and on the page.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from sidecar_core.errors import SidecarError
from sidecar_core.experiments.records import InMemory
from sidecar_core.host.lease import Lease, mask_unexpected_errors, open_lease
from sidecar_core.host.model_host import ModelHost
from sidecar_core.host.monitor import Kind
from sidecar_core.host.session import Tab
from sidecar_core.view.pace import CHARTS_PER_SECOND, UPDATES_PER_SECOND, Pace
from sidecar_core.view.render import status

KEPT = "Results so far are kept."


class Pause(Enum):
    """An item of `Measurement.work`: queued visitors go first."""

    LET_OTHERS_PASS = 1


class Measurement(Protocol):
    """Fold of an experiment's items into what the page shows and what can be saved."""

    kind: Kind

    def check(self) -> None:
        """Raises SidecarError for input that cannot be measured."""

    def work(self, engine: Any, stop: Callable[[], bool]) -> Generator[Any, None, None]:
        """The experiment's items, with a Pause between its parts."""

    def add(self, item: Any) -> None: ...

    def status(self) -> dict[str, str]:
        """The stage in words, and the progress of the whole."""

    def result(self, *, running: bool) -> str:
        """The results so far, as HTML."""

    def conclusion(self) -> str:
        """The status line of a complete measurement. Raises SidecarError if nothing was
        measured."""


@dataclass(frozen=True, slots=True)
class LabView:
    """What a measurement changes on the page; `result` is None if it stays as it is."""

    status: dict[str, str]
    result: str | None
    running: bool


M = TypeVar("M", bound=Measurement)


class LabSession(Tab, Generic[M]):
    """State of one browser tab's lab: `records` of what it measured (in memory only), and the
    `latest` measurement, which the page shows."""

    def __init__(self) -> None:
        super().__init__()
        self.records = InMemory()
        self.latest: M | None = None


def run_lab(
    host: ModelHost, session: LabSession[M], measurement: M, visitor: str | None = None
) -> Iterator[LabView]:
    """Views of one measurement, the last one with `running` false. Raises SidecarError."""
    with host.monitor.open(measurement.kind) as monitored:
        measurement.check()
        with open_lease(host, session, monitored, visitor) as lease:
            session.latest = measurement
            try:
                line = status("Waiting for the models.", "busy")
                yield LabView(line, measurement.result(running=True), True)
                with mask_unexpected_errors(measurement.kind):
                    yield from _work(lease, measurement)
                line = status(lease.early_end(KEPT) or measurement.conclusion(), "done")
                yield LabView(line, measurement.result(running=False), False)
            except SidecarError as error:
                line = status(str(error), "error")
                yield LabView(line, measurement.result(running=False), False)
                raise


def _work(lease: Lease, measurement: Measurement) -> Iterator[LabView]:
    updates, results = Pace(UPDATES_PER_SECOND), Pace(CHARTS_PER_SECOND)
    for line in lease.wait():
        yield LabView(line, None, True)
    if lease.engine is None:
        return
    lease.begin()
    # Closed before the lease ends: the models are then idle.
    with contextlib.closing(measurement.work(lease.engine, lease.limit)) as items:
        for item in items:
            if isinstance(item, Pause):
                for line in lease.requeue():
                    yield LabView(line, None, True)
                if lease.engine is None:
                    return
                continue
            measurement.add(item)
            if updates.due():
                result = measurement.result(running=True) if results.due() else None
                yield LabView(measurement.status(), result, True)
