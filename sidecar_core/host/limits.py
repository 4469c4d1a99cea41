"""How many runs may wait and how long each may take: defaults, and the clock that ends a run."""

from __future__ import annotations

import threading
import time

MAX_WAITING = 20
"""Runs that may wait in the queue; further ones are refused."""

MAX_SECONDS = 600
"""Longest time for one run on the models; waiting does not count."""

LAB_SHARE = 6
"""A lab's measurement may take this many times as long as a run."""


def time_limit_message(seconds: float) -> str:
    return f"Stopped: the time limit of {seconds:g} s was reached."


class TimeLimit:
    """Tells work whether to stop: because `stop` is set, or `seconds` after `begin`.

    `over` says that it was the time.
    """

    def __init__(self, stop: threading.Event, seconds: float) -> None:
        self.over = False
        self._stop = stop
        self._seconds = seconds
        self._end: float | None = None

    def begin(self) -> None:
        """Start the clock; later calls have no effect."""
        if self._end is None:
            self._end = time.monotonic() + self._seconds

    def __call__(self) -> bool:
        if not self._stop.is_set() and self._end is not None and time.monotonic() >= self._end:
            self.over = True
        return self.over or self._stop.is_set()

    @property
    def message(self) -> str:
        """The status line of a run that the limit stopped."""
        return time_limit_message(self._seconds)
