"""One visitor's use of the models, from the click to the end: a run, or a lab's measurement.

`open_lease` wraps it: one at a time in each tab, a Stop, a time limit, a position in the queue, and
an entry in the monitor. Whatever happens inside, models and tab are free again afterwards.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from sidecar_core.errors import SidecarError
from sidecar_core.host.limits import TimeLimit
from sidecar_core.host.model_host import EngineLike, ModelHost
from sidecar_core.host.monitor import Kind, MonitoredRun
from sidecar_core.host.queue import Ticket, queue_message
from sidecar_core.host.session import Tab
from sidecar_core.report import RunReport
from sidecar_core.view.render import status

WORDS: dict[Kind, str] = {"run": "run", "alpha": "measurement", "leak": "leak test"}
"""What a visitor calls each kind of work."""


class Lease:
    """`stop` and `limit` end it. `engine` is set while the models are this lease's to use."""

    def __init__(
        self, host: ModelHost, tab: Tab, monitored: MonitoredRun, visitor: str | None
    ) -> None:
        self.stop = tab.stop
        self.limit = TimeLimit(
            self.stop, host.max_seconds if monitored.kind == "run" else host.lab_seconds
        )
        self.engine: EngineLike | None = None
        self._host, self._tab, self._monitored, self._visitor = host, tab, monitored, visitor
        self._ticket: Ticket | None = None
        self._lock = threading.Lock()
        self._holders = 1  # the `with` block, and what it starts
        monitored.follow(self.stop)

    def wait(self) -> Iterator[dict[str, str]]:
        """Status lines until the models are loaded and free. If the lease was stopped meanwhile,
        `engine` is None. Raises SidecarError if loading fails, Busy if the queue is full."""
        host, self.engine = self._host, None
        if self._ticket is None:
            self._ticket = host.queue.enter(self._visitor, self.stop)
        host.start()
        what = WORDS[self._monitored.kind]
        while not self.limit():
            engine = host.engine()
            if engine is None:
                now = host.status()
                if now.state == "failed":
                    raise SidecarError(now.text)
                line = f"{now.text}. Your {what} will start automatically."
                yield status(line, "busy", now.fraction)
            elif position := host.queue.position(self._ticket):
                seconds = host.queue.wait_seconds(self._ticket)
                yield status(queue_message(position, seconds), "busy")
            else:
                host.queue.begin(self._ticket)
                self.limit.begin()
                self.engine = engine
                return
            self.stop.wait(0.25)

    def begin(self) -> None:
        """Its input was accepted; its work on the models begins now."""
        self._monitored.begin()

    def requeue(self) -> Iterator[dict[str, str]]:
        """Let everybody who waits go first, then `wait` again."""
        if self._ticket is not None:
            self._host.queue.requeue(self._ticket)
        return self.wait()

    def figures(self, report: RunReport) -> None:
        """The monitor reads this lease's figures from `report`."""
        self._monitored.follow(self.stop, report)

    def keep(self) -> None:
        """The models are in use until `release`, possibly beyond the end of the `with` block."""
        with self._lock:
            self._holders += 1

    def release(self) -> None:
        """The models are free for the next in the queue."""
        self._host.queue.leave(self._ticket)
        self._let_go()

    def early_end(self, kept: str) -> str | None:
        """The status line if the lease ended early, else None; `kept` tells what is left."""
        if self.limit.over:
            return f"{self.limit.message} {kept}"
        return f"Stopped. {kept}" if self.stop.is_set() else None

    def _close(self) -> None:
        self._monitored.stopped = self.limit.over or self.stop.is_set()
        self.stop.set()
        self._let_go()

    def _let_go(self) -> None:
        """Queue and tab are free once nobody holds the lease: the page has shown the last view,
        and the last forward pass is over."""
        with self._lock:
            self._holders -= 1
            last = self._holders == 0
        if last:
            self._host.queue.leave(self._ticket)
            self._tab.busy.release()


@contextlib.contextmanager
def open_lease(
    host: ModelHost, tab: Tab, monitored: MonitoredRun, visitor: str | None
) -> Iterator[Lease]:
    """Wraps one lease. `visitor` identifies who asks: each visitor has at most one run in progress
    or queued. Raises Busy if the tab has one already."""
    tab.take(WORDS[monitored.kind])
    lease = Lease(host, tab, monitored, visitor)
    try:
        yield lease
    finally:
        lease._close()


@contextlib.contextmanager
def mask_unexpected_errors(kind: Kind) -> Iterator[None]:
    """Turns any exception but a SidecarError into a SidecarError that names its class only."""
    try:
        yield
    except SidecarError:
        raise
    except Exception as error:
        words = f"The {WORDS[kind]} failed: {type(error).__name__}. Start it again."
        raise SidecarError(words) from error
