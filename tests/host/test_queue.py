"""The line at the models: order, places, estimates, limits."""

from __future__ import annotations

import threading

import pytest

from sidecar_core.errors import SidecarError
from sidecar_core.host import queue as module
from sidecar_core.host.queue import TimeLimit, Turnstile, place_in_words


class Clock:
    """Stands in for `time`: moves when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


def turn(line: Turnstile, clock: Clock, seconds: float) -> None:
    ticket = line.enter()
    line.begin(ticket)
    clock.now += seconds
    line.leave(ticket)


def test_a_full_waiting_line_refuses_with_a_clear_message() -> None:
    turnstile = Turnstile(max_waiting=2)
    tickets = [turnstile.enter() for _ in range(3)]
    with pytest.raises(SidecarError, match=r"Busy: 2 visitors .* try again"):
        turnstile.enter()
    turnstile.leave(tickets[0])
    assert turnstile.ahead(tickets[1]) == 0
    turnstile.enter()


def test_places_follow_the_order_of_coming() -> None:
    line = Turnstile()
    tickets = [line.enter() for _ in range(4)]
    assert [line.ahead(t) for t in tickets] == [0, 1, 2, 3]
    line.leave(tickets[1])
    assert [line.ahead(t) for t in (tickets[0], *tickets[2:])] == [0, 1, 2]


def test_with_room_for_three_the_fourth_is_the_first_to_wait() -> None:
    line = Turnstile(at_once=3)
    tickets = [line.enter() for _ in range(5)]
    assert [line.ahead(t) for t in tickets] == [0, 0, 0, 1, 2]
    line.leave(tickets[1])
    assert line.ahead(tickets[3]) == 0


def test_one_visitor_has_one_place_and_strangers_have_any_number() -> None:
    line = Turnstile()
    ticket = line.enter("ann")
    line.enter("bob")
    line.enter()
    line.enter()
    with pytest.raises(SidecarError, match="already"):
        line.enter("ann")
    line.leave(ticket)
    line.enter("ann")


def test_only_who_is_gone_is_stopped() -> None:
    line = Turnstile()
    stops = {name: threading.Event() for name in ("ann", "bob")}
    for name, stop in stops.items():
        line.enter(name, stop)
    stranger = threading.Event()
    line.enter(None, stranger)
    line.gone("bob")
    assert [stops["ann"].is_set(), stops["bob"].is_set(), stranger.is_set()] == [False, True, False]


def test_who_steps_back_lets_the_others_pass_and_keeps_a_place_in_a_full_line() -> None:
    line = Turnstile(max_waiting=1)
    lab, other = line.enter("lab"), line.enter()
    line.step_back(lab)
    assert line.ahead(other) == 0
    assert line.ahead(lab) == 1
    assert len(line) == 2


def test_there_is_no_estimate_before_a_turn_was_measured(clock: Clock) -> None:
    line = Turnstile()
    first, second = line.enter(), line.enter()
    line.begin(first)
    clock.now += 5
    assert line.seconds(second) is None
    line.leave(first)
    third = line.enter()
    assert line.seconds(third) == 5


def test_the_estimate_is_what_is_left_of_those_before(clock: Clock) -> None:
    line = Turnstile()
    turn(line, clock, 20)
    first, second, third = (line.enter() for _ in range(3))
    line.begin(first)
    clock.now += 8
    assert line.seconds(second) == 12
    assert line.seconds(third) == 32
    clock.now += 100  # longer than usual: nothing is left of it, and never less
    assert line.seconds(third) == 20


def test_two_at_a_time_take_half_as_long(clock: Clock) -> None:
    line = Turnstile(at_once=2)
    turn(line, clock, 20)
    tickets = [line.enter() for _ in range(5)]
    assert line.seconds(tickets[4]) == 40


def test_the_mean_follows_recent_turns(clock: Clock) -> None:
    line = Turnstile()
    turn(line, clock, 100)
    for _ in range(20):
        turn(line, clock, 10)
    line.enter()
    estimate = line.seconds(line.enter())
    assert estimate is not None
    assert 10 <= estimate < 11


def test_waiting_that_is_given_up_is_not_measured(clock: Clock) -> None:
    line = Turnstile()
    line.enter()
    second = line.enter()
    clock.now += 50
    line.leave(second)
    assert line.seconds(line.enter()) is None


@pytest.mark.parametrize(
    ("ahead", "seconds", "words"),
    [
        (1, None, "Your place: 1st."),
        (2, 3.0, "Your place: 2nd; about 10 s."),
        (3, 41.0, "Your place: 3rd; about 40 s."),
        (4, 170.0, "Your place: 4th; about 3 min."),
        (11, 0.0, "Your place: 11th; about 10 s."),
        (13, None, "Your place: 13th."),
        (21, None, "Your place: 21st."),
    ],
)
def test_a_place_is_told_in_words(ahead: int, seconds: float | None, words: str) -> None:
    assert place_in_words(ahead, seconds) == f"Waiting for the models. {words}"


def test_many_threads_leave_an_empty_line() -> None:
    line = Turnstile(max_waiting=1000)

    def visit() -> None:
        for _ in range(100):
            ticket = line.enter()
            line.begin(ticket)
            line.step_back(ticket)
            line.ahead(ticket)
            line.leave(ticket)

    threads = [threading.Thread(target=visit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(line) == 0


def test_a_time_limit_counts_from_its_beginning_and_says_that_it_was_the_time(clock: Clock) -> None:
    limit = TimeLimit(threading.Event(), 30)
    clock.now += 100
    assert not limit()
    limit.begin()
    clock.now += 29
    limit.begin()
    assert not limit()
    clock.now += 1
    assert limit()
    assert limit.over
    assert "30 s" in limit.words


def test_a_stop_is_no_lack_of_time(clock: Clock) -> None:
    stop = threading.Event()
    limit = TimeLimit(stop, 30)
    limit.begin()
    stop.set()
    clock.now += 60
    assert limit()
    assert not limit.over
