"""A recording as a stream of views: the same fold as a live run's, at a speed of one's choice.

It needs no model and no turn. Every view carries a banner that says that it is a recording, of
which pair, in what precision, on what machine, when. Where a run was silent (the prefill above all)
the replay waits MAX_SILENCE at most, and the banner says so.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sidecar_core.events import (
    Event,
    PrefillProgress,
    RoundStarted,
    SummaryFinished,
    TagsFinished,
)
from sidecar_core.recording import Recording
from sidecar_core.scenarios import BY_KEY
from sidecar_core.view.pace import UPDATES_PER_SECOND
from sidecar_core.view.render import status, text
from sidecar_core.view.run_view import LiveRun, RunView
from sidecar_core.view.runs_table import RunRecord

MAX_SILENCE = 2.0
"""Seconds of the replay at speed 1; a run that was silent for longer goes on after them."""

SPEEDS = {"1×": 1.0, "2×": 2.0, "4×": 4.0, "10×": 10.0, "at once": math.inf}

Wait = Callable[[float], bool]
"""Waits so many seconds, or until it is to stop: then it returns True."""


@dataclass(slots=True)
class Player:
    """What one tab plays: `at` of its events are shown. Play goes on from there."""

    recording: Recording | None = None
    at: int = 0
    speed: float = 1.0
    earlier: Sequence[RunRecord] = ()
    records: Sequence[RunRecord] = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> Player:
        return Player()

    def load(self, recording: Recording, earlier: Sequence[RunRecord] = ()) -> None:
        """Put a recording in, at its beginning. `earlier` are what it is to be compared with."""
        self.recording, self.earlier, self.at = recording, earlier, 0


@dataclass(frozen=True, slots=True)
class Timeline:
    """When each event is shown, in seconds at speed 1, and how many silent ones were left out."""

    at: tuple[float, ...]
    shortened: float = 0.0

    @classmethod
    def of(cls, events: Sequence[Event]) -> Timeline:
        """Reports on the prefill are no news: however many, they count as one silence."""
        times, now, before, quiet = list[float](), 0.0, 0.0, 0.0
        for event in events:
            own = isinstance(event, TagsFinished)  # its seconds are those of one tagger
            seconds = before if own else max(before, getattr(event, "seconds", before))
            step = min(seconds - before, MAX_SILENCE - quiet)
            quiet = quiet + step if isinstance(event, PrefillProgress) else 0.0
            now, before = now + step, seconds
            times.append(now)
        return cls(tuple(times), before - now)


def banner(recording: Recording) -> str:
    """The line that stays on the page as long as anything of the recording does."""
    shortened = Timeline.of(recording.events).shortened
    words = f"<b>This is a recording</b>: <bdi>{text(recording.header.describe())}</bdi>."
    if shortened >= 1:
        words += f" {shortened:.0f} silent seconds are left out."
    return f'<p class="recorded">{words}</p>'


def steps(events: Sequence[Event]) -> list[int]:
    """Where single steps stop: behind each round, behind the summary, at the end."""
    rounds = [n for n, e in enumerate(events) if isinstance(e, RoundStarted) and e.round]
    behind = [n + 1 for n, e in enumerate(events) if isinstance(e, SummaryFinished)]
    return [*rounds, *behind, len(events)]


def replay(
    player: Player, wait: Wait, clock: Callable[[], float] = time.monotonic
) -> Iterator[RunView]:
    """Views from where the player is to the end, at most ten a second. `wait` ends it early; it
    can go on from there."""
    fold = _Fold(player)
    events = fold.recording.events
    times = Timeline.of(events).at
    now = times[player.at - 1] if player.at else 0.0
    last = clock()
    yield fold.view()
    while player.at < len(events):
        if wait(_pause(times[player.at] - now, player.speed)):
            yield _Fold(player).view(running=False)
            return
        passed, last = clock() - last, clock()
        now = math.inf if math.isinf(player.speed) else now + passed * player.speed
        while player.at < len(events) and times[player.at] <= now:
            fold.live.add(events[player.at])
            player.at += 1
        if player.at < len(events):
            yield fold.view()
    yield fold.view(running=False)


def step(player: Player, rounds: int) -> RunView:
    """One round on (1) or back (-1)."""
    assert player.recording is not None
    stops = steps(player.recording.events)
    if rounds > 0:
        player.at = next((n for n in stops if n > player.at), stops[-1])
    else:
        player.at = next((n for n in reversed(stops) if n < player.at), 0)
    return _Fold(player).view(running=False)


def record_of(recording: Recording, number: int) -> RunRecord:
    """A recording as an earlier run: a thin line in the chart, and numbers to compare with."""
    fold = LiveRun(recording.article, recording.settings)
    for event in recording.events:
        fold.add(event)
    return fold.record(number)


def _pause(ahead: float, speed: float) -> float:
    """Seconds until there is something to show, such that Stop and a new speed are soon heard."""
    return min(max(ahead / speed, 1 / UPDATES_PER_SECOND), 0.5)


class _Fold:
    """The events up to where a player is, as views of a recording."""

    def __init__(self, player: Player) -> None:
        assert player.recording is not None
        self.player, self.recording = player, player.recording
        self.banner = banner(self.recording)
        scenario = BY_KEY.get(self.recording.header.scenario)
        self.live = LiveRun(
            self.recording.article, self.recording.settings, player.earlier, scenario
        )
        for event in self.recording.events[: player.at]:
            self.live.add(event)

    def view(self, running: bool = True) -> RunView:
        over = self.player.at == len(self.recording.events)
        view = self.live.view(
            self._line(running, over), running=running or not over, records=self.player.records
        )
        return dataclasses.replace(view, running=running, banner=self.banner)

    def _line(self, running: bool, over: bool) -> dict[str, str]:
        """The status line; what it is comes first, for those who hear the page."""
        report = self.live.report
        if report.error:
            return status(f"Recording: {report.error}", "error")
        if over and not report.finished:
            return status("The recording ends here, before the run did.", "done")
        if not running and not over:
            total = sum(isinstance(e, RoundStarted) for e in self.recording.events)
            return status(f"The recording is held in round {report.rounds} of {total}.", "idle")
        line = self.live.status()
        return line | {"message": f"Recording: {line['message']}"}
