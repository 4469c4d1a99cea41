"""The tour: it plays by itself, can be led, and tells only what its recordings show."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable
from typing import Any

import pytest

from sidecar_core.events import SummaryFinished, TagsFinished, TokenAccepted, TokenRejected
from sidecar_core.examples import load_examples
from sidecar_core.grounding import ground
from sidecar_core.installed import ASSETS
from sidecar_core.page.shelf import RecordingShelf
from sidecar_core.recording import Recording, record
from sidecar_core.scenarios import BY_KEY, find_scenario
from sidecar_core.settings import RunSettings
from sidecar_core.view.player import Player, Tour, record_of
from sidecar_core.view.run_view import RunView
from sidecar_core.view.tour import HOLD, OVER, guided, untold
from tests.runs import one_round, started, whole_run

ARTICLE = "The plant closed. The Broken Arrow line is gone."
SHELF = RecordingShelf.of(ASSETS / "recordings")
ALPHAS = {"identical": 0.75, "suffix-visible": 0.73, "suffix-masked": 0.748}
BY_ARTICLE: dict[str, dict[str, Recording]] = {}
for shipped in SHELF.found.values():
    if found := find_scenario(shipped.header.scenario):
        BY_ARTICLE.setdefault(shipped.header.title, {})[found.key] = shipped


def scene(key: str) -> Recording:
    settings = BY_KEY[key].apply(RunSettings())
    tag = "brokenarrow" if key == "document-attended" else "plant"
    events = [started(settings), *whole_run(settings, tag)[1:]]
    overlap = ALPHAS.get(key, 0.748)
    events = [
        dataclasses.replace(e, overlap=overlap)
        if isinstance(e, TokenAccepted | TokenRejected)
        else e
        for e in events
    ]
    return record(events, key).named("Plant", ARTICLE)


def shelf() -> RecordingShelf:
    return RecordingShelf({key: scene(key) for key in BY_KEY})


def player() -> Player:
    made = Player()
    made.guide(Tour(shelf().story()))
    return made


class Clock:
    """Time that passes only while somebody waits; `then` may act at every wait and end it."""

    def __init__(self, then: Callable[[Clock], Any] = lambda clock: False) -> None:
        self.now, self.then = 0.0, then

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return bool(self.then(self))

    def __call__(self) -> float:
        return self.now


def told(made: Player, clock: Clock) -> list[tuple[float, RunView]]:
    return [(clock.now, view) for view in guided(made, clock.wait, clock)]


def scene_of(view: RunView) -> int:
    return int(view.banner.split('data-tour="')[1][0]) if "data-tour" in view.banner else 0


def test_it_plays_all_scenarios_in_order_and_holds_each_conclusion() -> None:
    seen = told(player(), Clock())
    order = [scene_of(view) for _, view in seen]
    assert list(dict.fromkeys(order)) == [1, 2, 3, 4, 5, 0]
    for number in range(1, 6):
        last = max(n for n, at in enumerate(order) if at == number)
        assert seen[last + 1][0] - seen[last][0] >= HOLD
        assert "#" in seen[last][1].note or "tags in the summary" in seen[last][1].note
    assert seen[-1][1].status["message"] == OVER


def test_every_view_is_marked_as_a_recording_of_its_scenario() -> None:
    for _, view in told(player(), Clock()):
        assert "This is a recording" in view.banner
        title = view.note.split("</b>")[0].removeprefix("<b>").rstrip(".")
        key = next(s.key for s in BY_KEY.values() if s.title == title)
        assert f'data-scenario="{key}"' in view.banner


@pytest.mark.parametrize(("leads", "there"), [([1], 2), ([1, 1, -1], 2), ([-1], 1), ([1] * 9, 5)])
def test_it_can_be_led_and_stays_within_its_scenes(leads: list[int], there: int) -> None:
    made, left = player(), list(leads)

    def lead(clock: Clock) -> bool:
        assert made.tour
        if left and not made.tour.lead:
            made.tour.lead = left.pop(0)
            return False
        return not left and not made.tour.lead

    seen = told(made, Clock(lead))
    assert scene_of(seen[-1][1]) == there
    assert "paused" in seen[-1][1].status["message"]


def test_a_held_tour_goes_on_where_it_was() -> None:
    made = player()
    held = told(made, Clock(lambda clock: made.at > 9))
    at = made.at
    assert 9 < at < len(whole_run())
    assert scene_of(held[-1][1]) == 1
    rest = told(made, Clock())
    assert rest[0][1].stream == held[-1][1].stream
    assert rest[-1][1].status["message"] == OVER


def test_for_reduced_motion_it_shows_the_end_of_one_scene_and_waits() -> None:
    made = player()
    assert made.tour
    made.tour.still = True
    for number in (1, 2, 3):
        ((now, view),) = told(made, Clock())
        assert (now, scene_of(view)) == (0.0, number)
        assert "α" in view.note
        made.tour.lead = 1


def test_a_scene_about_tags_begins_at_the_written_summary() -> None:
    made = player()
    assert made.tour
    made.tour.at, made.tour.lead = 2, 1
    first = next(iter(guided(made, Clock().wait, Clock())))
    assert "closed" in first.stream["done"]
    assert "chip" not in first.sidecar["list"]


# The story


def test_a_story_that_the_runs_do_not_show_is_not_told() -> None:
    runs = {key: record_of(scene(key), 1) for key in BY_KEY}
    assert untold(runs) == []
    assert untold({**runs, "suffix-visible": runs["suffix-masked"]}) == [
        "suffix-visible",
        "suffix-masked",
    ]
    assert untold({**runs, "suffix-masked": runs["suffix-visible"]}) == ["suffix-masked"]
    assert untold({**runs, "document-attended": runs["document-masked"]}) == ["document-attended"]
    assert untold({**runs, "document-masked": runs["document-attended"]}) == ["document-masked"]
    other = record_of(record([started(), *one_round(0, [("a", 0.748)])], "suffix-masked"), 1)
    assert untold({**runs, "suffix-masked": other}) == ["suffix-masked"]
    runs.pop("suffix-masked")
    assert untold(runs) == ["suffix-masked"]


def test_without_an_article_that_tells_it_there_is_no_tour() -> None:
    flat = {k: scene(k) for k in BY_KEY}
    flat["suffix-visible"] = dataclasses.replace(
        flat["suffix-masked"], header=flat["suffix-visible"].header
    )
    assert RecordingShelf(flat).story() == []
    assert RecordingShelf({}).story() == []
    assert len(shelf().story()) == 5


def alpha(recording: Recording) -> float:
    """Mean overlap over the judged drafts, straight from the events."""
    judged = (e for e in recording.events if isinstance(e, TokenAccepted | TokenRejected))
    return statistics.fmean(e.overlap for e in judged if e.overlap is not None)


def summary(recording: Recording) -> SummaryFinished:
    return next(e for e in recording.events if isinstance(e, SummaryFinished))


def outside(recording: Recording) -> list[str]:
    """The sidecar's tags with a word that is only in the document."""
    (tags,) = (
        e.tags for e in recording.events if isinstance(e, TagsFinished) and e.tagger == "sidecar"
    )
    assert recording.article
    text = summary(recording).text
    return [tag for tag in tags if ground(tag, text, recording.article).place == "document"]


def tells(runs: dict[str, Recording]) -> bool:
    """Whether recordings of one article show every sentence of the tour."""
    base = alpha(runs["identical"])
    fall = base - alpha(runs["suffix-visible"])
    return (
        fall >= 0.005
        and abs(alpha(runs["suffix-masked"]) - base) <= fall / 2
        and len({summary(run).ids for run in runs.values()}) == 1
        and bool(outside(runs["document-attended"]))
        and not outside(runs["document-masked"])
    )


@pytest.mark.parametrize("title", BY_ARTICLE)
def test_a_shipped_article_is_fit_for_the_tour_exactly_if_its_events_show_the_story(
    title: str,
) -> None:
    runs = {key: record_of(run, 1) for key, run in BY_ARTICLE[title].items()}
    assert (not untold(runs)) == tells(BY_ARTICLE[title])


@pytest.mark.parametrize(
    "name", [name for name, r in SHELF.found.items() if find_scenario(r.header.scenario)]
)
def test_a_shipped_recording_ends_in_what_its_events_show(name: str) -> None:
    recording = SHELF.found[name]
    shown = Player()
    shown.load(recording, SHELF.earlier(recording))
    said = shown.recording.header.compared  # type: ignore[union-attr]
    scenario = find_scenario(recording.header.scenario)
    assert scenario
    runs = BY_ARTICLE[recording.header.title]
    base = round(alpha(runs["identical"]), 3)
    if scenario.key == "suffix-visible":
        step = round(alpha(recording), 3) - base
        assert ("fell" in said, "rose" in said) == (step < 0, step > 0)
    if scenario.needs_baseline:
        same = summary(recording).ids == summary(runs["identical"]).ids
        assert f"{base:.3f} with identical prompts (run 1)" in said
        assert ("token for token" in said) == same


def test_the_shipped_tour_is_of_an_example_that_tells_the_story() -> None:
    scenes = [recording for recording, _ in SHELF.story()]
    assert [find_scenario(s.header.scenario) for s in scenes] == list(BY_KEY.values())
    (title,) = {s.header.title for s in scenes}
    assert tells(BY_ARTICLE[title])
    assert scenes[0].article in [example.text for example in load_examples()]


def test_an_unrelated_draft_prompt_is_shown_to_fall_far() -> None:
    unrelated = [r for r in SHELF.found.values() if r.settings.draft_prompt == "unrelated"]
    if not unrelated:
        pytest.skip("no shipped recording has an unrelated draft prompt")
    for recording in unrelated:
        assert alpha(recording) < 0.7 * alpha(BY_ARTICLE[recording.header.title]["identical"])
