"""Who uses the models, who waits, and for how long.

`Turnstile` lets runs at the models in the order in which they came, one at a time or as many as
memory allows, tells everybody their place and about how long it takes, and holds at most one place
for each visitor. `TimeLimit` ends a run that takes too long, as a Stop would.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from sidecar_core.errors import SidecarError

MAX_WAITING = 20
"""Runs that may wait for the models; more are refused with one clear line."""

RECENT = 0.3
"""Weight of the latest turn in the moving average of how long turns take."""


@dataclass(slots=True, eq=False)
class Ticket:
    """A place in the line; `began` is when its turn at the models began (monotonic), `stop` ends
    its work."""

    visitor: str | None
    stop: threading.Event | None = None
    began: float | None = None


class Turnstile:
    """First come, first served, `at_once` at a time. Safe to use from any thread."""

    def __init__(self, max_waiting: int = MAX_WAITING, at_once: int = 1) -> None:
        self._lock = threading.Lock()
        self._line: list[Ticket] = []
        self.max_waiting = max_waiting
        self._at_once = at_once
        self._mean: float | None = None

    def widen(self, at_once: int) -> None:
        """Let so many at the models at a time from now on."""
        with self._lock:
            self._at_once = at_once

    def enter(self, visitor: str | None = None, stop: threading.Event | None = None) -> Ticket:
        """A place at the end of the line. Raises SidecarError when too many wait already, or when
        this visitor (None: nobody knows who) has a place."""
        ticket = Ticket(visitor, stop)
        with self._lock:
            if visitor is not None and any(t.visitor == visitor for t in self._line):
                raise SidecarError(
                    "You have a run at the models or in the line already; stop it, or wait for "
                    "its end."
                )
            if len(self._line) >= self.max_waiting + self._at_once:
                raise SidecarError(
                    f"Busy: {self.max_waiting} visitors are waiting for the models already; "
                    "try again in a minute."
                )
            self._line.append(ticket)
        return ticket

    def ahead(self, ticket: Ticket) -> int:
        """How many turns must end before this one's; 0 means that it is its turn."""
        with self._lock:
            return max(0, self._line.index(ticket) - self._at_once + 1)

    def seconds(self, ticket: Ticket) -> float | None:
        """About how long this ticket has to wait, or None before any turn was measured."""
        with self._lock:
            if self._mean is None:
                return None
            now = time.monotonic()
            before = self._line[: self._line.index(ticket)]
            left = (self._mean - (now - t.began if t.began is not None else 0.0) for t in before)
            return sum(max(0.0, seconds) for seconds in left) / self._at_once

    def begin(self, ticket: Ticket) -> None:
        """Say that this ticket's work at the models begins now."""
        with self._lock:
            ticket.began = time.monotonic()

    def step_back(self, ticket: Ticket) -> None:
        """Let everybody pass who waits: to the end of the line, without losing the place in it."""
        with self._lock:
            self._end(ticket)
            self._line.append(ticket)

    def leave(self, ticket: Ticket | None) -> None:
        """Give the place up, waiting or done; giving it up twice does nothing."""
        with self._lock:
            if ticket in self._line:
                self._end(ticket)

    def gone(self, visitor: str) -> None:
        """This visitor is not there any more: what runs or waits for them is to stop."""
        with self._lock:
            for ticket in self._line:
                if ticket.visitor == visitor and ticket.stop is not None:
                    ticket.stop.set()

    def waiting(self) -> int:
        """How many wait for their turn."""
        with self._lock:
            return max(0, len(self._line) - self._at_once)

    def __len__(self) -> int:
        """How many are at the models or wait."""
        with self._lock:
            return len(self._line)

    def _end(self, ticket: Ticket) -> None:
        self._line.remove(ticket)
        if ticket.began is not None:
            took = time.monotonic() - ticket.began
            self._mean = took if self._mean is None else self._mean + RECENT * (took - self._mean)
            ticket.began = None


def place_in_words(ahead: int, seconds: float | None) -> str:
    """What somebody reads who waits: "Your place: 3rd; about 40 s."."""
    ending = "th" if 10 < ahead % 100 < 20 else {1: "st", 2: "nd", 3: "rd"}.get(ahead % 10, "th")
    words = f"Waiting for the models. Your place: {ahead}{ending}"
    if seconds is None:
        return words + "."
    if seconds > 120:
        return f"{words}; about {round(seconds / 60)} min."
    return f"{words}; about {max(1, round(seconds / 10)) * 10} s."


class TimeLimit:
    """Whether to stop: because the visitor said so, or because `seconds` are over since `begin`.

    `over` says that it was the time.
    """

    def __init__(self, stop: threading.Event, seconds: float) -> None:
        self.over = False
        self._stop = stop
        self._seconds = seconds
        self._end: float | None = None

    def begin(self) -> None:
        """The clock runs from the first call on."""
        if self._end is None:
            self._end = time.monotonic() + self._seconds

    def __call__(self) -> bool:
        if not self._stop.is_set() and self._end is not None and time.monotonic() >= self._end:
            self.over = True
        return self.over or self._stop.is_set()

    @property
    def words(self) -> str:
        """How the end is told."""
        return f"Stopped after {self._seconds:g} s, the longest that is allowed here."
