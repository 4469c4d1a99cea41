"""A recording as a stream of views: the same fold as for a live run, at any speed.

It needs no model and no queue. Every view has a banner that says that it is a recording, of which
pair, in which precision, on what machine, and when. Where a run was silent (mostly in prefill) the
replay waits MAX_SILENCE at most, and the banner says so.
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
from sidecar_core.prompts import Article
from sidecar_core.recording import Recording
from sidecar_core.scenarios import find_scenario
from sidecar_core.view.pace import UPDATES_PER_SECOND
from sidecar_core.view.render import status, text
from sidecar_core.view.run_view import LiveRun, RunView
from sidecar_core.view.runs_table import RunRecord

MAX_SILENCE = 2.0
"""Longest pause of a replay in seconds, at speed 1."""

SPEEDS = {"1×": 1.0, "2×": 2.0, "4×": 4.0, "10×": 10.0, "instant": math.inf}

KEYS = ' <span class="keys">Space pauses, ← → change scene, Esc ends.</span>'

Wait = Callable[[float], bool]
"""Waits that many seconds; returns True early if the replay is to stop."""


@dataclass(slots=True)
class Tour:
    """Recordings that are shown one after the other, each with the runs to compare it with. `lead`
    asks for the next scene (1) or the one before (-1); with `still`, nothing moves by itself."""

    scenes: Sequence[tuple[Recording, Sequence[RunRecord]]]
    still: bool = False
    at: int = 0
    lead: int = 0


@dataclass(slots=True)
class Player:
    """What one tab plays: the first `at` events are shown, and Play continues from there. `tour` is
    set as long as the recording is a scene of it."""

    recording: Recording | None = None
    at: int = 0
    speed: float = 1.0
    earlier: Sequence[RunRecord] = ()
    records: Sequence[RunRecord] = ()
    tour: Tour | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Player:
        return Player()

    def load(self, recording: Recording, earlier: Sequence[RunRecord] = ()) -> None:
        """Show a recording by itself, from its beginning."""
        self.tour = None
        self.show(recording, earlier)

    def guide(self, tour: Tour) -> None:
        """Show a tour from its first scene."""
        self.tour = tour
        self.show(*tour.scenes[0])

    def show(self, recording: Recording, earlier: Sequence[RunRecord]) -> None:
        """Load a recording and rewind. `earlier` are the runs to compare it with, if it was not
        compared when it was saved."""
        if earlier and not recording.header.compared:
            recording = recording.comparing(fold(recording, earlier, recording.events).comparison())
        self.recording, self.earlier, self.at = recording, earlier, 0


@dataclass(frozen=True, slots=True)
class Timeline:
    """When each event is shown, in seconds at speed 1, and how many silent seconds are left out."""

    at: tuple[float, ...]
    shortened: float = 0.0

    @classmethod
    def of(cls, events: Sequence[Event]) -> Timeline:
        """All prefill progress together counts as one silence."""
        times, now, before, quiet = list[float](), 0.0, 0.0, 0.0
        for event in events:
            own = isinstance(event, TagsFinished)  # its seconds are the tagger's own
            seconds = before if own else max(before, getattr(event, "seconds", before))
            step = min(seconds - before, MAX_SILENCE - quiet)
            quiet = quiet + step if isinstance(event, PrefillProgress) else 0.0
            now, before = now + step, seconds
            times.append(now)
        return cls(tuple(times), before - now)


def banner(recording: Recording, tour: Tour | None = None) -> str:
    """The line that stays on the page as long as the recording is shown. It names the scenario, so
    that the page can mark its button."""
    shortened = Timeline.of(recording.events).shortened
    words = f"<b>This is a recording</b>: <bdi>{text(recording.header.describe())}</bdi>."
    if shortened >= 1:
        words += f" {shortened:.0f} silent seconds are left out."
    scenario = find_scenario(recording.header.scenario)
    marks = f' data-scenario="{scenario.key}"' if scenario else ""
    if tour:
        marks += f' data-tour="{tour.at + 1}"'
        words = f"<b>Tour, {tour.at + 1} of {len(tour.scenes)}.</b> {words}{KEYS}"
    return f'<p class="recorded"{marks}>{words}</p>'


def steps(events: Sequence[Event]) -> list[int]:
    """Where single steps stop: after each round, after the summary, at the end."""
    rounds = [n for n, e in enumerate(events) if isinstance(e, RoundStarted) and e.round]
    behind = [n + 1 for n, e in enumerate(events) if isinstance(e, SummaryFinished)]
    return [*rounds, *behind, len(events)]


def replay(
    player: Player, wait: Wait, clock: Callable[[], float] = time.monotonic
) -> Iterator[RunView]:
    """Views from the player's position to the end, at most ten a second. If `wait` ends it early,
    a later call continues from there."""
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
    """One round forward (1) or back (-1)."""
    assert player.recording is not None
    stops = steps(player.recording.events)
    if rounds > 0:
        player.at = next((n for n in stops if n > player.at), stops[-1])
    else:
        player.at = next((n for n in reversed(stops) if n < player.at), 0)
    return _Fold(player).view(running=False)


def end(player: Player) -> RunView:
    """The whole recording at once."""
    assert player.recording is not None
    player.at = len(player.recording.events)
    return _Fold(player).view(running=False)


def fold(recording: Recording, earlier: Sequence[RunRecord], events: Sequence[Event]) -> LiveRun:
    """What these events of a recording come to, beside earlier runs."""
    header = recording.header
    scenario = find_scenario(header.scenario)
    live = LiveRun(
        _article(recording), recording.settings, earlier, scenario, compared=header.compared
    )
    for event in events:
        live.add(event)
    return live


def record_of(recording: Recording, number: int) -> RunRecord:
    """A recording as an earlier run: a thin line in the chart, and numbers to compare with."""
    return fold(recording, (), recording.events).record(number)


def conclusion(recording: Recording) -> str:
    """What the recorded run ended in."""
    return fold(recording, (), recording.events).conclusion()


def _article(recording: Recording) -> Article | None:
    return None if recording.article is None else Article.of(recording.article)


def _pause(ahead: float, speed: float) -> float:
    """Seconds until there is something to show, short enough to react to Stop and a new speed."""
    return min(max(ahead / speed, 1 / UPDATES_PER_SECOND), 0.5)


class _Fold:
    """The events up to the player's position, as views of a recording."""

    def __init__(self, player: Player) -> None:
        assert player.recording is not None
        self.player, self.recording = player, player.recording
        self.banner = banner(self.recording, player.tour)
        self.live = fold(self.recording, player.earlier, self.recording.events[: player.at])

    def view(self, running: bool = True) -> RunView:
        over = self.player.at == len(self.recording.events)
        view = self.live.view(
            self._line(running, over), running=running or not over, records=self.player.records
        )
        return dataclasses.replace(view, running=running, banner=self.banner)

    def _line(self, running: bool, over: bool) -> dict[str, str]:
        """The status line. It begins with "Recording", for screen readers."""
        report = self.live.report
        if report.error:
            return status(f"Recording: {report.error}", "error")
        if over and not report.finished:
            return status("The recording ends here; the run went on.", "done")
        if not running and not over:
            total = sum(isinstance(e, RoundStarted) for e in self.recording.events)
            return status(f"Recording paused at round {len(report.rounds)} of {total}.", "idle")
        line = self.live.status()
        return line | {"message": f"Recording: {line['message']}"}
