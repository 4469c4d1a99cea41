"""The chart of α and the attention map."""

from __future__ import annotations

import dataclasses
import itertools

import plotly.graph_objects as go
import pytest

from sidecar_core.events import Event
from sidecar_core.report import RoundTally, RunReport, alphas
from sidecar_core.settings import RunSettings
from sidecar_core.view import attention_map as module
from sidecar_core.view.alpha_chart import HEIGHT, LINE, MAX_NAMES, alpha_figure
from sidecar_core.view.attention_map import COMPOUND, DEFERRED, attention_map, reading
from tests.runs import HOSTILE, SEGMENTS, one_round, whole_run


def rounds(events: list[Event]) -> list[RoundTally]:
    return RunReport.of(events).rounds


def test_the_last_round_has_the_alpha_of_the_run() -> None:
    report = RunReport.of(whole_run())
    assert report.rounds[-1].alpha == report.alpha


def test_a_round_counts_judged_and_drafted_apart() -> None:
    tally = rounds(one_round(0, [("a", 0.9)], ("b", 0.2), "c", gamma=4))[0]
    assert (tally.drafted, tally.judged, tally.accepted, tally.bonus) == (4, 2, 1, 0)


def lines(figure: go.Figure) -> list[go.Scatter]:
    return [trace for trace in figure.data if trace.type == "scatter"]


def test_a_chart_of_nothing_has_no_points() -> None:
    assert [len(line.x) for line in lines(alpha_figure(()))] == [0]


def test_earlier_runs_are_thin_labelled_lines_under_the_current_one() -> None:
    run = rounds(whole_run())
    drawn = lines(alpha_figure(run, [("identical #1", run), ("visible #2", run)], "masked"))
    assert [line.line.width for line in drawn] == [1, 1, 2.5]
    assert [line.line.dash for line in drawn] == ["solid", "dash", "solid"]
    end = f" {alphas(run)[-1][1]:.3f}"
    names = alpha_figure(run, [("identical #1", run), ("visible #2", run)], "masked")
    assert [note.text for note in names.layout.annotations] == [
        f"{end} identical #1",
        f"{end} visible #2",
        f"{end} masked",
    ]
    assert list(drawn[-1].y) == [alpha for _, alpha in alphas(run)]


def test_names_of_lines_that_end_together_stand_apart_and_inside_the_figure() -> None:
    run = rounds(whole_run())
    ghosts = [(f"masked #{n}", run) for n in range(1, 12)]
    notes = alpha_figure(run, ghosts, "masked").layout.annotations
    assert len(notes) == MAX_NAMES + 1
    shifts = sorted(note.yshift for note in notes)
    assert all(b - a >= LINE - 1e-9 for a, b in itertools.pairwise(shifts))
    assert shifts[-1] - shifts[0] < HEIGHT


def test_hovering_a_round_tells_its_number_and_what_it_came_to() -> None:
    figure = alpha_figure(rounds(whole_run()))
    told = lines(figure)[0].hovertext
    bars = [trace.hovertext for trace in figure.data if trace.type == "bar"]
    assert bars == [told, None, None]
    assert told[0].startswith("round 1: 2 of 3 judged drafts accepted (4 drafted)")
    assert told[1].startswith("round 2: 4 of 4 judged drafts accepted")


def test_bars_count_each_judged_draft_and_each_bonus() -> None:
    run = rounds(
        [*one_round(0, [("a", 0.9)], ("b", 0.2), "c"), *one_round(1, [("d", 1.0)], own="e")]
    )
    bars = {trace.name: list(trace.y) for trace in alpha_figure(run).data if trace.type == "bar"}
    assert bars == {"accepted": [1, 1], "rejected": [1, 0], "bonus": [0, 1]}


@pytest.mark.parametrize("overlap", [0.0, 0.5, 1.0])
def test_every_value_is_finite_and_plain(overlap: float) -> None:
    run = rounds(one_round(0, [("a", overlap)], own="b"))
    sent = alpha_figure(run, [("x", run)]).to_json()
    assert "NaN" not in sent
    assert "bdata" not in sent  # no packed arrays: the page's plotly.js reads lists


def test_a_label_is_text() -> None:
    run = rounds(whole_run())
    figure = alpha_figure(run, [(HOSTILE, run)], HOSTILE)
    names = [note.text for note in figure.layout.annotations]
    assert len(names) == 2
    assert all("img" in name and "<" not in name for name in names)


def cell(settings: RunSettings, row: int, column: str) -> str:
    order = DEFERRED if settings.draft_prompt == "identical" else COMPOUND
    return module.rows(order, settings)[row].cells[order.index(column)]


TARGET, SUMMARY, TAGS = 0, 1, 2


def test_the_target_never_has_the_suffix() -> None:
    for masking in (True, False):
        assert cell(RunSettings(suffix_masking=masking), TARGET, "suffix") == "none"


def test_suffix_masking_hides_the_suffix_from_the_summary_only() -> None:
    assert cell(RunSettings(suffix_masking=True), SUMMARY, "suffix") == "masked"
    assert cell(RunSettings(suffix_masking=False), SUMMARY, "suffix") == "all"
    assert cell(RunSettings(suffix_masking=True), TAGS, "suffix") == "all"


def test_document_masking_hides_the_document_from_the_tags_only() -> None:
    assert cell(RunSettings(document_masking=True), TAGS, "document") == "masked"
    assert cell(RunSettings(document_masking=False), TAGS, "document") == "all"
    assert cell(RunSettings(document_masking=True), SUMMARY, "document") == "all"


def test_an_identical_prompt_reads_the_suffix_behind_the_summary() -> None:
    settings = RunSettings(draft_prompt="identical")
    assert cell(settings, SUMMARY, "suffix") == "none"
    assert cell(settings, TAGS, "suffix") == "all"


def test_the_map_shows_the_segments_lengths_and_follows_every_toggle() -> None:
    settings = RunSettings()
    drawn = attention_map(dict(SEGMENTS), settings)
    assert "<small>100</small>" in drawn
    for change in (
        {"suffix_masking": False},
        {"document_masking": False},
        {"draft_prompt": "identical"},
    ):
        assert attention_map(dict(SEGMENTS), dataclasses.replace(settings, **change)) != drawn


def test_the_map_can_be_drawn_before_the_tokenizer_is_there() -> None:
    assert attention_map({}, RunSettings()).count("<tr>") == 4


def test_an_unrelated_prompt_has_words_instead_of_a_map() -> None:
    assert "<table" not in attention_map({}, RunSettings(draft_prompt="unrelated"))


def test_the_reading_says_how_much_smaller_the_tagger_is() -> None:
    assert "100 fewer tokens" in reading(dict(SEGMENTS), RunSettings())
    assert "the document and the summary" in reading({}, RunSettings(document_masking=False))
