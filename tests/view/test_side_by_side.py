"""Two recorded runs go in step, and end in what the second changes."""

from __future__ import annotations

import dataclasses

from sidecar_core.events import RoundStarted
from sidecar_core.recording import Recording, record
from sidecar_core.settings import RunSettings
from sidecar_core.view.alpha_chart import BLUE, VERMILION
from sidecar_core.view.side_by_side import SECONDS, TwoRuns, TwoViews, play, step, view
from tests.runs import HOSTILE, one_round, started, whole_run

ARTICLE = "The plant closed. The Broken Arrow line is gone."
MASKED = RunSettings()
ATTENDED = dataclasses.replace(MASKED, document_masking=False)


def recorded(settings: RunSettings = MASKED, tag: str = "plant", title: str = "Plant") -> Recording:
    return record(whole_run(settings, tag)).named(title, ARTICLE)


def pair() -> TwoRuns:
    return TwoRuns(recorded(ATTENDED, "broken-arrow"), recorded())


def played(two: TwoRuns) -> list[TwoViews]:
    waits: list[float] = []
    views = list(play(two, lambda seconds: waits.append(seconds) or False))
    assert waits == [SECONDS] * (len(views) - 1)
    return views


def test_both_go_round_by_round_then_come_the_summaries_then_the_tags() -> None:
    views = played(pair())
    assert [v.line for v in views[:-1]] == [
        "Round 1 of 2.",
        "Round 2 of 2.",
        "Both summaries are finished; the sidecars write tags.",
    ]
    assert [v.running for v in views] == [True, True, True, False]
    assert all("tag" not in v.right.tags["list"] for v in views[:-1])
    assert "#plant" in views[-1].right.tags["list"]
    assert "#broken-arrow" in views[-1].left.tags["list"]


def test_a_step_shows_as_many_rounds_of_each() -> None:
    two = pair()
    for n in (1, 2):
        seen = step(two, 1)
        assert [len(trace.x) for trace in seen.chart.data] == [n, n]
        assert [e.round for e in two.events(two.left) if isinstance(e, RoundStarted)] == [*range(n)]
    names = step(two, -1)
    assert names.line == "Round 1 of 2."
    assert [note.font.color for note in names.chart.layout.annotations] == [BLUE, VERMILION]


def test_the_shorter_run_waits() -> None:
    short = record([started(), *one_round(0, [("a", 0.9)], own="b"), *whole_run()[-6:]]).named(
        "short", ARTICLE
    )
    two = TwoRuns(short, recorded())
    views = played(two)
    assert [len(v.chart.data[0].x) for v in views] == [1, 1, 1, 1]
    assert [len(v.chart.data[1].x) for v in views] == [1, 2, 2, 2]


def test_it_can_be_held_and_goes_on_from_there() -> None:
    two = pair()
    held = list(play(two, lambda seconds: True))
    assert [v.line for v in held] == ["Round 1 of 2."] * 2
    assert not held[-1].running
    assert played(two)[0].line == "Round 2 of 2."


def test_at_its_end_it_begins_again() -> None:
    two = pair()
    played(two)
    assert played(two)[0].line == "Round 1 of 2."


def test_the_conclusion_counts_both() -> None:
    line = played(pair())[-1].line
    assert "α is 0.800 on the left and 0.800 on the right (±0.000)." in line
    assert "The text is the same, token for token." in line
    assert "1 of 2 and 0 of 2 tags have words that are only in the document." in line


def test_runs_on_different_articles_are_not_compared() -> None:
    other = record(whole_run()).named("Other", "Another article.")
    assert played(TwoRuns(recorded(), other))[-1].line == "The two runs are on different articles."


def test_an_unfinished_run_is_not_compared() -> None:
    cut = record(whole_run()[:9])
    assert played(TwoRuns(cut, recorded()))[-1].line.startswith("One of the two runs ended")


def test_what_a_recording_says_is_text() -> None:
    hostile = recorded(title=HOSTILE)
    seen = view(TwoRuns(hostile, hostile), running=False)
    assert "<img" not in seen.left.head
