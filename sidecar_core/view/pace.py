"""Pacing: how often the page is updated, however fast the engine is."""

from __future__ import annotations

import time
from collections.abc import Callable

UPDATES_PER_SECOND = 10
"""Most updates that a run sends to one browser."""

CHARTS_PER_SECOND = 2
"""Most redraws of a chart."""


class Pace:
    """Says when the next update is due; the first one is due immediately."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval = 1 / per_second
        self._clock = clock
        self._next = float("-inf")

    def due(self) -> bool:
        """True at most `per_second` times a second; returning True starts the next interval."""
        now = self._clock()
        if now < self._next:
            return False
        self._next = now + self._interval
        return True

    def wait(self) -> float:
        """Seconds until the next update is due."""
        return max(0.0, self._next - self._clock())
