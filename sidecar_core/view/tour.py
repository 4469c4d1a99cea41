"""The tour: the five scenarios on one article, told by recordings that play by themselves.

Only an article whose recordings show what the scenarios are about is shown: `untold` says what is
missing. The tour is a stream of views, as a replay is, and needs no model either.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping

from sidecar_core.events import SummaryFinished
from sidecar_core.scenarios import BY_KEY, find_scenario
from sidecar_core.view.conclusion import whole
from sidecar_core.view.player import Player, Wait, end, replay
from sidecar_core.view.render import status
from sidecar_core.view.run_view import RunView
from sidecar_core.view.runs_table import RunRecord

SPEED = "2×"
"""The speed at which the tour begins: a name in `SPEEDS`."""

HOLD = 7.0
"""Seconds for which a conclusion stays."""

FALL = 0.005
"""By how much α must fall with the suffix visible, to be called a fall."""

OVER = "The tour is over. Press Start, or choose one of the five scenarios."


def untold(runs: Mapping[str, RunRecord]) -> list[str]:
    """The scenarios of which these runs on one article, by scenario, do not show what the tour
    says; empty if they tell the whole story."""
    if missing := [key for key in BY_KEY if key not in runs]:
        return missing
    alpha = {key: run.report.alpha or 0.0 for key, run in runs.items()}
    fall = alpha["identical"] - alpha["suffix-visible"]
    apart = abs(alpha["suffix-masked"] - alpha["identical"])
    ids = runs["identical"].report.ids
    shown = {
        "identical": True,
        "suffix-visible": fall >= FALL,
        "suffix-masked": apart <= fall / 2,
        "document-attended": runs["document-attended"].leaks not in ("–", "0"),
        "document-masked": runs["document-masked"].leaks == "0",
    }
    same = {key: whole(runs[key].report) and runs[key].report.ids == ids for key in shown}
    return [key for key in shown if not (shown[key] and same[key])]


def guided(
    player: Player, wait: Wait, clock: Callable[[], float] = time.monotonic
) -> Iterator[RunView]:
    """Views of the player's tour from where it stands. `tour.lead` leads to another scene at once;
    if `wait` ends it early, a later call goes on from there. A tour that stands still shows the
    end of one scene and waits to be led."""
    tour = player.tour
    assert tour is not None

    def ended(seconds: float) -> bool:
        return wait(seconds) or bool(tour.lead)

    while True:
        if tour.lead:
            _turn(player)
        if tour.still:
            yield end(player)
            return
        for view in replay(player, ended, clock):
            if view.running or not tour.lead:
                yield view
        assert player.recording is not None
        if not tour.lead and player.at < len(player.recording.events):
            return
        begun = clock()
        while not tour.lead and clock() - begun < HOLD:
            if wait(0.5):
                return
        if not tour.lead and tour.at == len(tour.scenes) - 1:
            player.tour = None
            yield dataclasses.replace(end(player), status=status(OVER, "done"))
            return
        tour.lead = tour.lead or 1


def _turn(player: Player) -> None:
    """To the scene that `lead` asks for, at its beginning. A scene about tags begins where the
    summary is written: it is the same as before."""
    tour = player.tour
    assert tour is not None
    tour.at = min(max(tour.at + tour.lead, 0), len(tour.scenes) - 1)
    tour.lead = 0
    recording, earlier = tour.scenes[tour.at]
    player.show(recording, earlier)
    scenario = find_scenario(recording.header.scenario)
    if scenario and scenario.about_tags:
        ends = (n for n, e in enumerate(recording.events) if isinstance(e, SummaryFinished))
        player.at = next(ends, 0)
