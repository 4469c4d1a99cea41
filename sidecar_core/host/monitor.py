"""Every run in progress: reported to observers (logs, metrics), and stopped when the app closes.

`Monitor.open` wraps one run. Observers learn that it was asked for, when it reaches the models, and
how it ended. They get figures and the class of an error, never a word of an article, a summary or a
prompt. An unexpected exception leaves as a SidecarError.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from sidecar_core.errors import Busy, SidecarError
from sidecar_core.report import RunReport

log = logging.getLogger(__name__)

Kind = Literal["run", "alpha", "leak"]
Outcome = Literal["finished", "stopped", "failed", "refused"]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended. A `refused` run never reached the models; `reason` is the finish reason of
    its summary, "" if there is none."""

    kind: Kind
    outcome: Outcome
    reason: str
    tokens: int
    seconds: float
    tokens_per_second: float | None
    alpha: float | None
    error: str


class Observer(Protocol):
    """Called from any thread."""

    def began(self, kind: Kind) -> None: ...

    def ended(self, run: Ended) -> None: ...


class MonitoredRun:
    """One run, from the visitor's click to its end."""

    def __init__(self, monitor: Monitor, kind: Kind) -> None:
        self._monitor, self.kind = monitor, kind
        self.since = time.monotonic()
        self.began = False
        self.stopped = False
        """Set if the run ends early because it was told to."""
        self.stop = threading.Event()
        self.report = RunReport()

    def follow(self, stop: threading.Event, report: RunReport | None = None) -> None:
        """`stop` ends this run when the app closes; `report` holds its figures."""
        self.stop = stop
        self.report = report or self.report
        if self._monitor.closing:
            stop.set()

    def begin(self) -> None:
        """The run has the models now. Idempotent."""
        if not self.began:
            self.began = True
            for observer in self._monitor.observers:
                observer.began(self.kind)


class Monitor:
    """The runs of one app."""

    def __init__(self, *observers: Observer) -> None:
        self.observers = observers
        self.closing = False
        self._changed = threading.Condition()
        self._running: set[MonitoredRun] = set()

    @contextlib.contextmanager
    def open(self, kind: Kind) -> Iterator[MonitoredRun]:
        """Wraps one run. Whatever is raised inside leaves as a SidecarError."""
        run = MonitoredRun(self, kind)
        outcome: Outcome = "stopped"
        failure: BaseException | None = None
        with self._changed:
            self._running.add(run)
        try:
            if self.closing:
                raise Busy("The server is shutting down. Try again in a minute.")
            yield run
            outcome = _outcome(run)
        except SidecarError as error:
            unexpected = not isinstance(error.__cause__ or error, SidecarError)
            outcome, failure = "failed" if run.began or unexpected else "refused", error
            raise
        except Exception as error:
            outcome, failure = "failed", error
            raise SidecarError(
                f"The run failed: {type(error).__name__}. Start it again."
            ) from error
        finally:
            with self._changed:
                self._running.discard(run)
                self._changed.notify_all()
            self._notify(run, outcome, failure)

    def close(self, seconds: float) -> None:
        """Stop all runs, admit no others, and wait until they have ended, at most `seconds`."""
        with self._changed:
            self.closing = True
            for run in self._running:
                run.stop.set()
            self._changed.wait_for(lambda: not self._running, seconds)

    def _notify(self, run: MonitoredRun, outcome: Outcome, failure: BaseException | None) -> None:
        report = run.report
        cause = failure.__cause__ or failure if failure else None
        if outcome == "failed" and not isinstance(cause, SidecarError):
            log.error("A run failed", exc_info=cause)
        ended = Ended(
            kind=run.kind,
            outcome=outcome,
            reason=report.finished.reason if report.finished else "",
            tokens=report.emitted,
            seconds=time.monotonic() - run.since,
            tokens_per_second=report.tokens_per_second,
            alpha=report.alpha,
            error=type(cause).__name__ if cause else "",
        )
        for observer in self.observers:
            observer.ended(ended)


def _outcome(run: MonitoredRun) -> Outcome:
    """The outcome of a run that showed its last view."""
    cancelled = run.report.ending in ("stopped", "timed_out")
    return "stopped" if run.stopped or cancelled or not run.began else "finished"
