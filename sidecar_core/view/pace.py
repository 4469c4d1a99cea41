"""Pacing: how often something may happen, whatever the engine does."""

from __future__ import annotations

import time
from collections.abc import Callable

UPDATES_PER_SECOND = 10
"""The most updates a run sends to one browser."""

CHARTS_PER_SECOND = 2
"""The most redraws of a chart."""


class Pace:
    """Says when the next thing is due; the first one is due at once."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval = 1 / per_second
        self._clock = clock
        self._next = float("-inf")

    def due(self) -> bool:
        """True at most `per_second` times a second; taking it starts the next interval."""
        now = self._clock()
        if now < self._next:
            return False
        self._next = now + self._interval
        return True

    def wait(self) -> float:
        """Seconds until something is due."""
        return max(0.0, self._next - self._clock())
