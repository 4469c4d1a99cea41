"""The chart of α and the attention map."""

from __future__ import annotations

import dataclasses
import re
from itertools import pairwise

import pytest

from sidecar_core.events import Event
from sidecar_core.report import RunReport
from sidecar_core.settings import RunSettings
from sidecar_core.ui.attention_map import COMPOUND, DEFERRED, attention_map, reading, rows
from sidecar_core.ui.figures import Series, alpha_chart
from tests.ui.runs import HOSTILE, SEGMENTS, one_round, whole_run


def series(events: list[Event]) -> Series:
    found = Series()
    for event in events:
        found.add(event)
    return found


def test_the_series_ends_at_the_reports_alpha() -> None:
    report = RunReport.of(whole_run())
    assert series(whole_run()).alphas() == report.alpha_by_round


def test_a_round_counts_judged_and_drafted_apart() -> None:
    tally = series(one_round(0, [("a", 0.9)], ("b", 0.2), "c", gamma=4)).rounds[0]
    assert (tally.drafted, tally.judged, tally.accepted, tally.bonus) == (4, 2, 1, 0)


def test_the_chart_says_that_there_is_nothing_yet() -> None:
    chart = alpha_chart(Series())
    assert "polyline" not in chart
    assert "nothing was judged yet" in chart


def test_earlier_runs_are_thin_labelled_lines_under_the_current_one() -> None:
    run = series(whole_run())
    chart = alpha_chart(run, [("plain (run 1)", run), ("in sight (run 2)", run)], "masked")
    assert re.findall(r'polyline class="(\w+)"', chart) == ["ghost", "ghost", "now"]
    assert "plain (run 1)" in chart
    assert f"{run.alphas()[-1][1]:.3f} masked" in chart


def test_hovering_a_round_tells_its_number_and_what_it_came_to() -> None:
    chart = alpha_chart(series(whole_run()))
    assert "round 1: 2 of 3 judged drafts accepted (4 drafted)" in chart
    assert "round 2: 4 of 4 judged drafts accepted" in chart


def test_a_block_stands_for_each_judged_draft_and_each_bonus() -> None:
    run = series(
        [*one_round(0, [("a", 0.9)], ("b", 0.2), "c"), *one_round(1, [("d", 1.0)], own="e")]
    )
    bars = alpha_chart(run).split('class="rounds"')[1]
    assert [bars.count(f'<b class="{kind}">') for kind in ("acc", "rej", "bon")] == [2, 1, 1]


@pytest.mark.parametrize("overlap", [0.0, 0.5, 1.0])
def test_every_line_stays_within_finite_bounds(overlap: float) -> None:
    run = series(one_round(0, [("a", overlap)], own="b"))
    numbers = re.findall(r"-?\d+\.\d+|nan|inf", alpha_chart(run, [("x", run)]))
    assert numbers
    assert not {"nan", "inf"} & set(numbers)


def test_labels_of_lines_that_end_together_do_not_overlap() -> None:
    run = series(whole_run())
    ends = re.findall(
        r'class="end \w+" style="bottom:([\d.]+)%"', alpha_chart(run, [("a", run)] * 4)
    )
    heights = sorted(map(float, ends))
    assert len(heights) == 5
    assert all(b - a >= 12.9 for a, b in pairwise(heights))


def test_a_label_is_text() -> None:
    assert HOSTILE not in alpha_chart(series(whole_run()), [(HOSTILE, series(whole_run()))])


def cell(settings: RunSettings, row: int, column: str) -> str:
    order = DEFERRED if settings.draft_prompt == "identical" else COMPOUND
    return rows(order, settings)[row].cells[order.index(column)]


TARGET, SUMMARY, TAGS = 0, 1, 2


def test_the_target_never_has_the_suffix() -> None:
    for masking in (True, False):
        assert cell(RunSettings(suffix_masking=masking), TARGET, "suffix") == "none"


def test_suffix_masking_hides_the_suffix_from_the_summary_only() -> None:
    assert cell(RunSettings(suffix_masking=True), SUMMARY, "suffix") == "hidden"
    assert cell(RunSettings(suffix_masking=False), SUMMARY, "suffix") == "all"
    assert cell(RunSettings(suffix_masking=True), TAGS, "suffix") == "all"


def test_document_masking_hides_the_document_from_the_tags_only() -> None:
    assert cell(RunSettings(document_masking=True), TAGS, "document") == "hidden"
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
    assert "100 tokens less" in reading(dict(SEGMENTS), RunSettings())
    assert "as well as the summary" in reading({}, RunSettings(document_masking=False))
