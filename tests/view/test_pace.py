"""Pacing, on a clock that the test moves."""

from __future__ import annotations

from sidecar_core.view.pace import Pace


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_at_most_that_many_a_second_whatever_is_asked() -> None:
    clock = Clock()
    pace = Pace(10, clock)
    granted = 0
    for _ in range(1000):
        granted += pace.due()
        clock.now += 0.005
    assert 45 <= granted <= 51


def test_the_first_is_due_at_once_and_the_next_after_the_interval() -> None:
    clock = Clock()
    pace = Pace(2, clock)
    assert pace.due()
    assert not pace.due()
    assert pace.wait() == 0.5
    clock.now += 0.5
    assert pace.wait() == 0
    assert pace.due()


def test_a_long_silence_earns_no_burst() -> None:
    clock = Clock()
    pace = Pace(10, clock)
    pace.due()
    clock.now += 60
    assert [pace.due() for _ in range(5)] == [True, False, False, False, False]
