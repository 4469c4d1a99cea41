from __future__ import annotations

import json

import pytest

from sidecar_core.events import (
    Event,
    PhaseChanged,
    PlainPass,
    PrefillProgress,
    RoundStarted,
    RunFailed,
    RunFinished,
    RunStarted,
    SummaryFinished,
    TagsFinished,
    TagsSkipped,
    TagText,
    TokenAccepted,
    TokenBonus,
    TokenCorrected,
    TokenDrafted,
    TokenRejected,
)
from sidecar_core.report import RunReport, ratio, shown
from tests.runs import whole_run

RATIOS = ("alpha", "acceptance_rate", "efficiency", "tokens_per_pass", "tokens_per_second")


def drafted(round_: int, count: int) -> list[Event]:
    tokens = [
        TokenDrafted(round_, place, 50 + place, "d", None, None, None, None, 1.0)
        for place in range(count)
    ]
    return [RoundStarted(round_, count, 1.0), *tokens]


def accepted(round_: int, place: int, overlap: float, seconds: float = 1.5) -> Event:
    return TokenAccepted(round_, place, 50 + place, "a", 0.5, 0.5, overlap, 0.2, seconds)


def rejected(round_: int, place: int, overlap: float) -> list[Event]:
    return [
        TokenRejected(round_, place, 50 + place, "r", 0.1, 0.9, overlap, 0.8, 1.5),
        TokenCorrected(round_, place, 70, "c", 0.6, 0.1, overlap, None, 1.5),
    ]


def bonus(round_: int, place: int, seconds: float = 1.5) -> Event:
    return TokenBonus(round_, place, 80, "b", 0.5, None, None, None, seconds)


FIRST_OF_FOUR_REJECTED = [*drafted(0, 4), *rejected(0, 0, 0.2)]
ALL_ACCEPTED = [*drafted(0, 2), accepted(0, 0, 0.8), accepted(0, 1, 0.6), bonus(0, 2)]


def plain_report(extra: bool) -> RunReport:
    events = [PhaseChanged("summary", 1.0), RoundStarted(0, 4, 1.0)]
    events += [PlainPass(0, seconds, extra, 1.0 + seconds) for seconds in (0.1, 0.2, 0.5)]
    events += [TokenBonus(0, n, 7, "a", 0.5, None, None, None, 3.0) for n in range(10)]
    return RunReport.of(events)


def test_speedup_is_measured_against_one_row_passes_of_the_same_run() -> None:
    assert plain_report(extra=False).speedup == pytest.approx(10 / 2.0 * 0.2)


def test_extra_passes_that_only_measure_do_not_count_as_decoding() -> None:
    report = plain_report(extra=True)
    assert report.tokens_per_second == pytest.approx(10 / (2.0 - 0.8))
    assert report.speedup == pytest.approx(10 / 1.2 * 0.2)


def test_without_a_plain_pass_there_is_no_speedup() -> None:
    assert RunReport.of(e for e in whole_run() if not isinstance(e, PlainPass)).speedup is None


def test_first_of_four_rejected_is_one_judged_and_none_accepted() -> None:
    report = RunReport.of(FIRST_OF_FOUR_REJECTED)
    assert (report.drafted, report.judged, report.accepted, report.rejected) == (4, 1, 0, 1)
    assert report.acceptance_rate == 0.0
    assert report.efficiency == 0.0
    assert report.alpha == pytest.approx(0.2)
    assert report.tokens_per_pass == 1.0
    assert [(p.drafted, p.judged, p.accepted) for p in report.places] == [
        (1, 1, 0), (1, 0, 0), (1, 0, 0), (1, 0, 0),
    ]  # fmt: skip
    assert report.as_dict()["acceptance_by_place"] == [0.0, None, None, None]


def test_a_rejected_position_counts_once_in_alpha() -> None:
    report = RunReport.of([*drafted(0, 2), accepted(0, 0, 1.0), *rejected(0, 1, 0.5)])
    assert report.overlaps == [1.0, 0.5]
    assert report.alpha == pytest.approx(0.75)


def test_a_bonus_token_is_emitted_but_never_judged() -> None:
    report = RunReport.of(ALL_ACCEPTED)
    assert (report.judged, report.accepted, report.emitted) == (2, 2, 3)
    assert report.acceptance_rate == 1.0
    assert report.tokens_per_pass == 3.0
    assert report.alpha == pytest.approx(0.7)


def test_only_kept_tokens_make_the_text() -> None:
    report = RunReport.of(
        [*drafted(0, 3), accepted(0, 0, 0.9), *rejected(0, 1, 0.1), *drafted(1, 0), bonus(1, 0)]
    )
    assert report.text == "acb"
    assert report.ids == [50, 70, 80]
    assert len(report.rounds) == 2
    assert report.tokens_per_pass == 1.5


def test_alpha_by_round_is_the_running_mean_behind_each_round() -> None:
    report = RunReport.of(
        [
            *drafted(0, 2), accepted(0, 0, 1.0), *rejected(0, 1, 0.5),
            *drafted(1, 1), *rejected(1, 0, 0.0),
        ]
    )  # fmt: skip
    assert report.alpha_by_round == [(0, pytest.approx(0.75)), (1, pytest.approx(0.5))]


@pytest.mark.parametrize(
    "events",
    [
        [],
        [PhaseChanged("summary", 1.0)],
        [PhaseChanged("summary", 1.0), *drafted(0, 4)],
        [RunFailed("The article is empty.", 0.0)],
    ],
)
def test_before_anything_was_judged_every_ratio_is_none(events: list[Event]) -> None:
    report = RunReport.of(events)
    assert report.alpha is None
    assert report.acceptance_rate is None
    assert report.tokens_per_pass is None
    assert report.tokens_per_second is None
    assert report.efficiency is None or report.drafted == 4
    json.dumps(report.as_dict(), allow_nan=False)


def test_plain_decoding_has_tokens_per_pass_but_no_alpha() -> None:
    report = RunReport.of(
        [RoundStarted(0, 0, 1.0), bonus(0, 0), RoundStarted(1, 0, 1.2), bonus(1, 0)]
    )
    assert report.alpha is None
    assert report.acceptance_rate is None
    assert report.efficiency is None
    assert report.tokens_per_pass == 1.0


def test_missing_ratios_are_shown_as_a_dash() -> None:
    assert ratio(0, 0) is None
    assert ratio(0, 4) == 0.0
    assert shown(None) == "–"
    assert shown(0.0) == "0.000"
    assert shown(2 / 3, 2) == "0.67"


def test_speed_counts_from_the_start_of_the_summary() -> None:
    report = RunReport.of(
        [
            PhaseChanged("prefill", 0.0), PhaseChanged("summary", 10.0), *drafted(0, 1),
            accepted(0, 0, 0.9, seconds=11.0), bonus(0, 1, seconds=12.0),
        ]
    )  # fmt: skip
    assert report.tokens_per_second == pytest.approx(1.0)


def test_the_result_object_has_the_documented_keys_and_is_json() -> None:
    started = RunStarted(
        "toy", "fp32", "cpu", {"gamma": 2}, (("head", 3), ("suffix", 2)), 3, 5, 2, (0, 0)
    )
    tags = TagsFinished("sidecar", 'wind"]', ("wind",), '["', 68, 2048, 30, 0.123456)
    report = RunReport.of(
        [
            started,
            PrefillProgress("target", 3, 3, 0.1),
            PhaseChanged("summary", 0.2),
            *ALL_ACCEPTED,
            SummaryFinished("aab", (50, 51, 80), "stop", 1, 2, 1.6),
            TagText("sidecar", 4, "wind", 1.7),
            tags,
            TagsSkipped("standalone", "why"),
            RunFinished("stop", {"total": 2.0}, 2.0),
        ]
    )
    result = report.as_dict()
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert {
        "summary", "summary_ids", "alpha", "acceptance_rate", "accepted", "judged", "drafted",
        "emitted", "target_passes", "tokens_per_pass", "finish_reason", "sidecar", "standalone",
        "prompt_tokens", "timings", "pair", "settings",
    } <= set(result)  # fmt: skip
    assert result["summary"] == "aab"
    assert result["finish_reason"] == "stop"
    assert result["prompt_tokens"] == {"target": 3, "draft": 5, "suffix": 2}
    assert result["sidecar"] == {
        "text": 'wind"]', "tags": ["wind"], "kv_tokens": 68, "kv_bytes": 2048,
        "prefill_tokens": 30, "seconds": 0.1235,
    }  # fmt: skip
    assert result["standalone"] is None
    assert report.taggers["standalone"].skipped == "why"
    assert report.taggers["sidecar"].text == "wind"
    assert result["timings"] == {"total": 2.0}


def test_a_report_can_be_read_after_every_event() -> None:
    report = RunReport()
    for event in [*FIRST_OF_FOUR_REJECTED, *drafted(1, 1), accepted(1, 0, 0.5)]:
        report.add(event)
        for name in RATIOS:
            value = getattr(report, name)
            assert value is None or value >= 0
        json.dumps(report.as_dict(), allow_nan=False)
