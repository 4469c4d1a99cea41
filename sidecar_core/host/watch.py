"""Every run that is under way: told to those who count or log, and stopped when the app closes.

`Watch.open` goes around one run. Whoever observes hears that it began, when it gets to the models,
and how it ended. They hear figures and the class of an error, never a word of an article, a summary
or a prompt. An exception that no user could understand leaves as a SidecarError.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from sidecar_core.errors import SidecarError
from sidecar_core.report import RunReport

log = logging.getLogger(__name__)

Kind = Literal["run", "alpha", "leak"]
Outcome = Literal["finished", "stopped", "failed", "refused"]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended. `refused` ones never got to the models; `reason` is the summary's."""

    kind: Kind
    outcome: Outcome
    reason: str
    tokens: int
    seconds: float
    tokens_per_second: float | None
    alpha: float | None
    error: str


class Observer(Protocol):
    """Hears of runs, from any thread."""

    def began(self, kind: Kind) -> None: ...

    def ended(self, run: Ended) -> None: ...


class Watched:
    """One run, from the visitor's click to its end."""

    def __init__(self, watch: Watch, kind: Kind) -> None:
        self._watch, self.kind = watch, kind
        self.since = time.monotonic()
        self.began = False
        self.stopped = False
        """Set by a run that ends early because it was asked to."""
        self.stop = threading.Event()
        self.report = RunReport()

    def follow(self, stop: threading.Event, report: RunReport | None = None) -> None:
        """`stop` ends this run when the app closes; `report` holds its figures."""
        self.stop = stop
        self.report = report or self.report
        if self._watch.closing:
            stop.set()

    def begin(self) -> None:
        """It has the models now; said again, it changes nothing."""
        if not self.began:
            self.began = True
            for observer in self._watch.observers:
                observer.began(self.kind)


class Watch:
    """The runs of one app."""

    def __init__(self, *observers: Observer) -> None:
        self.observers = observers
        self.closing = False
        self._changed = threading.Condition()
        self._running: set[Watched] = set()

    @contextlib.contextmanager
    def open(self, kind: Kind) -> Iterator[Watched]:
        """Goes around one run. Raises SidecarError, also for what was raised inside."""
        watched = Watched(self, kind)
        outcome: Outcome = "stopped"
        failure: BaseException | None = None
        with self._changed:
            self._running.add(watched)
        try:
            if self.closing:
                raise SidecarError("The server is closing; try again in a minute.")
            yield watched
            outcome = _outcome(watched)
        except SidecarError as error:
            unforeseen = not isinstance(error.__cause__ or error, SidecarError)
            outcome, failure = "failed" if watched.began or unforeseen else "refused", error
            raise
        except Exception as error:
            outcome, failure = "failed", error
            raise SidecarError(
                f"The run failed: {type(error).__name__}. Start it again."
            ) from error
        finally:
            with self._changed:
                self._running.discard(watched)
                self._changed.notify_all()
            self._tell(watched, outcome, failure)

    def close(self, seconds: float) -> None:
        """Stop all runs, let no other begin, and wait for their ends, at most `seconds`."""
        with self._changed:
            self.closing = True
            for watched in self._running:
                watched.stop.set()
            self._changed.wait_for(lambda: not self._running, seconds)

    def _tell(self, watched: Watched, outcome: Outcome, failure: BaseException | None) -> None:
        report = watched.report
        cause = failure.__cause__ or failure if failure else None
        if outcome == "failed" and not isinstance(cause, SidecarError):
            log.error("A run failed", exc_info=cause)
        ended = Ended(
            kind=watched.kind,
            outcome=outcome,
            reason=report.finished.reason if report.finished else "",
            tokens=report.emitted,
            seconds=time.monotonic() - watched.since,
            tokens_per_second=report.tokens_per_second,
            alpha=report.alpha,
            error=type(cause).__name__ if cause else "",
        )
        for observer in self.observers:
            observer.ended(ended)


def _outcome(watched: Watched) -> Outcome:
    """Of a run that came to its last view."""
    finished = watched.report.finished
    cancelled = finished is not None and finished.reason == "cancelled"
    return "stopped" if watched.stopped or cancelled or not watched.began else "finished"
