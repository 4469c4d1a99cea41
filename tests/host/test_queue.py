"""The queue for the models: order, positions, estimates, limits."""

from __future__ import annotations

import threading

import pytest

from sidecar_core.errors import Busy
from sidecar_core.host import limits
from sidecar_core.host import queue as module
from sidecar_core.host.limits import TimeLimit
from sidecar_core.host.queue import RunQueue, queue_message


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
    monkeypatch.setattr(limits, "time", made)
    return made


def turn(queue: RunQueue, clock: Clock, seconds: float) -> None:
    ticket = queue.enter()
    queue.begin(ticket)
    clock.now += seconds
    queue.leave(ticket)


def test_a_full_queue_refuses_with_a_clear_message() -> None:
    queue = RunQueue(max_waiting=2)
    tickets = [queue.enter() for _ in range(3)]
    with pytest.raises(Busy, match=r"full \(limit: 2\)\. Try again"):
        queue.enter()
    queue.leave(tickets[0])
    assert queue.position(tickets[1]) == 0
    queue.enter()


def test_positions_follow_the_order_of_arrival() -> None:
    queue = RunQueue()
    tickets = [queue.enter() for _ in range(4)]
    assert [queue.position(t) for t in tickets] == [0, 1, 2, 3]
    queue.leave(tickets[1])
    assert [queue.position(t) for t in (tickets[0], *tickets[2:])] == [0, 1, 2]


def test_with_room_for_three_the_fourth_is_the_first_to_wait() -> None:
    queue = RunQueue(at_once=3)
    tickets = [queue.enter() for _ in range(5)]
    assert [queue.position(t) for t in tickets] == [0, 0, 0, 1, 2]
    queue.leave(tickets[1])
    assert queue.position(tickets[3]) == 0


def test_a_visitor_is_queued_once_and_unknown_ones_any_number_of_times() -> None:
    queue = RunQueue()
    ticket = queue.enter("ann")
    queue.enter("bob")
    queue.enter()
    queue.enter()
    with pytest.raises(Busy, match="already"):
        queue.enter("ann")
    queue.leave(ticket)
    queue.enter("ann")


def test_only_who_is_gone_is_stopped() -> None:
    queue = RunQueue()
    stops = {name: threading.Event() for name in ("ann", "bob")}
    for name, stop in stops.items():
        queue.enter(name, stop)
    stranger = threading.Event()
    queue.enter(None, stranger)
    queue.visitor_left("bob")
    assert [stops["ann"].is_set(), stops["bob"].is_set(), stranger.is_set()] == [False, True, False]


def test_a_requeued_ticket_lets_the_others_pass_and_stays_in_a_full_queue() -> None:
    queue = RunQueue(max_waiting=1)
    lab, other = queue.enter("lab"), queue.enter()
    queue.requeue(lab)
    assert queue.position(other) == 0
    assert queue.position(lab) == 1
    assert len(queue) == 2


def test_there_is_no_estimate_before_a_turn_was_measured(clock: Clock) -> None:
    queue = RunQueue()
    first, second = queue.enter(), queue.enter()
    queue.begin(first)
    clock.now += 5
    assert queue.wait_seconds(second) is None
    queue.leave(first)
    third = queue.enter()
    assert queue.wait_seconds(third) == 5


def test_the_estimate_is_what_is_left_of_those_before(clock: Clock) -> None:
    queue = RunQueue()
    turn(queue, clock, 20)
    first, second, third = (queue.enter() for _ in range(3))
    queue.begin(first)
    clock.now += 8
    assert queue.wait_seconds(second) == 12
    assert queue.wait_seconds(third) == 32
    clock.now += 100  # longer than usual: nothing is left of it, and never less
    assert queue.wait_seconds(third) == 20


def test_two_at_a_time_take_half_as_long(clock: Clock) -> None:
    queue = RunQueue(at_once=2)
    turn(queue, clock, 20)
    tickets = [queue.enter() for _ in range(5)]
    assert queue.wait_seconds(tickets[4]) == 40


def test_the_mean_follows_recent_turns(clock: Clock) -> None:
    queue = RunQueue()
    turn(queue, clock, 100)
    for _ in range(20):
        turn(queue, clock, 10)
    queue.enter()
    estimate = queue.wait_seconds(queue.enter())
    assert estimate is not None
    assert 10 <= estimate < 11


def test_waiting_that_is_given_up_is_not_measured(clock: Clock) -> None:
    queue = RunQueue()
    queue.enter()
    second = queue.enter()
    clock.now += 50
    queue.leave(second)
    assert queue.wait_seconds(queue.enter()) is None


@pytest.mark.parametrize(
    ("position", "seconds", "words"),
    [
        (1, None, "position 1."),
        (2, 3.0, "position 2, about 10 s."),
        (3, 41.0, "position 3, about 40 s."),
        (4, 170.0, "position 4, about 3 min."),
        (11, 0.0, "position 11, about 10 s."),
    ],
)
def test_the_position_is_a_status_line(position: int, seconds: float | None, words: str) -> None:
    assert queue_message(position, seconds) == f"Queued: {words}"


def test_many_threads_leave_an_empty_queue() -> None:
    queue = RunQueue(max_waiting=1000)

    def visit() -> None:
        for _ in range(100):
            ticket = queue.enter()
            queue.begin(ticket)
            queue.requeue(ticket)
            queue.position(ticket)
            queue.leave(ticket)

    threads = [threading.Thread(target=visit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(queue) == 0


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
    assert "30 s" in limit.message


def test_a_stop_is_no_lack_of_time(clock: Clock) -> None:
    stop = threading.Event()
    limit = TimeLimit(stop, 30)
    limit.begin()
    stop.set()
    clock.now += 60
    assert limit()
    assert not limit.over
