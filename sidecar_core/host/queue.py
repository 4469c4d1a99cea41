"""The queue for the models: first come, first served, one run at a time or as many as fit.

Everybody who waits sees their position and an estimated waiting time. Each visitor has at most one
run in progress or queued.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from sidecar_core.errors import Busy
from sidecar_core.host.limits import MAX_WAITING

RECENT = 0.3
"""Weight of the latest run in the moving average of run times."""


@dataclass(slots=True, eq=False)
class Ticket:
    """One entry of the queue. `began` is when its work on the models began (monotonic seconds);
    setting `stop` ends its work."""

    visitor: str | None
    stop: threading.Event | None = None
    began: float | None = None


class RunQueue:
    """The runs in progress, `at_once` of them, and those that wait. Safe to use from any thread."""

    def __init__(self, max_waiting: int = MAX_WAITING, at_once: int = 1) -> None:
        self._lock = threading.Lock()
        self._tickets: list[Ticket] = []
        self.max_waiting = max_waiting
        self._at_once = at_once
        self._mean: float | None = None

    def widen(self, at_once: int) -> None:
        """Allow `at_once` runs at a time from now on."""
        with self._lock:
            self._at_once = at_once

    def enter(self, visitor: str | None = None, stop: threading.Event | None = None) -> Ticket:
        """Join the end of the queue. Raises Busy if the queue is full, or if this visitor (None:
        unknown) is already in it."""
        ticket = Ticket(visitor, stop)
        with self._lock:
            if visitor is not None and any(t.visitor == visitor for t in self._tickets):
                raise Busy(
                    "You already have a run in progress or queued. Stop it, or wait until it ends."
                )
            if len(self._tickets) >= self.max_waiting + self._at_once:
                raise Busy(f"The queue is full (limit: {self.max_waiting}). Try again in a minute.")
            self._tickets.append(ticket)
        return ticket

    def position(self, ticket: Ticket) -> int:
        """The position of a waiting ticket, from 1; 0 if the models are free for it."""
        with self._lock:
            return max(0, self._tickets.index(ticket) - self._at_once + 1)

    def wait_seconds(self, ticket: Ticket) -> float | None:
        """Estimated waiting time, None before any run was measured."""
        with self._lock:
            if self._mean is None:
                return None
            now = time.monotonic()
            before = self._tickets[: self._tickets.index(ticket)]
            left = (self._mean - (now - t.began if t.began is not None else 0.0) for t in before)
            return sum(max(0.0, seconds) for seconds in left) / self._at_once

    def begin(self, ticket: Ticket) -> None:
        """This ticket's work on the models begins now."""
        with self._lock:
            ticket.began = time.monotonic()

    def requeue(self, ticket: Ticket) -> None:
        """Move the ticket to the end of the queue, even if the queue is full."""
        with self._lock:
            self._remove(ticket)
            self._tickets.append(ticket)

    def leave(self, ticket: Ticket | None) -> None:
        """Leave the queue, waiting or done. Idempotent."""
        with self._lock:
            if ticket in self._tickets:
                self._remove(ticket)

    def visitor_left(self, visitor: str) -> None:
        """Stop everything that runs or waits for this visitor."""
        with self._lock:
            for ticket in self._tickets:
                if ticket.visitor == visitor and ticket.stop is not None:
                    ticket.stop.set()

    def waiting(self) -> int:
        """How many tickets wait."""
        with self._lock:
            return max(0, len(self._tickets) - self._at_once)

    def __len__(self) -> int:
        """How many tickets run or wait."""
        with self._lock:
            return len(self._tickets)

    def _remove(self, ticket: Ticket) -> None:
        self._tickets.remove(ticket)
        if ticket.began is not None:
            took = time.monotonic() - ticket.began
            self._mean = took if self._mean is None else self._mean + RECENT * (took - self._mean)
            ticket.began = None


def queue_message(position: int, seconds: float | None) -> str:
    """The status line of a queued run.

    >>> queue_message(3, 41.0)
    'Queued: position 3, about 40 s.'
    """
    words = f"Queued: position {position}"
    if seconds is None:
        return words + "."
    if seconds > 120:
        return f"{words}, about {round(seconds / 60)} min."
    return f"{words}, about {max(1, round(seconds / 10)) * 10} s."
