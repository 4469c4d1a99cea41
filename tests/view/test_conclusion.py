"""What a scenario sets, and what it says came out."""

from __future__ import annotations

import dataclasses

from sidecar_core.events import TagsFinished
from sidecar_core.report import RunReport
from sidecar_core.scenarios import BY_KEY, SCENARIOS
from sidecar_core.settings import RunSettings
from sidecar_core.view.conclusion import outcome
from sidecar_core.view.runs_table import RunRecord
from tests.runs import whole_run

MINE = RunSettings()
ARTICLE = "The plant closed. The Broken Arrow line is gone."


def measured(key: str, alpha: float, tag: str = "plant", base: RunSettings = MINE) -> RunRecord:
    settings = BY_KEY[key].apply(base)
    report = RunReport.of(whole_run(settings, tag))
    report.overlaps = [alpha]
    return RunRecord(settings, report)


def said(key: str, alpha: float, earlier: list[RunRecord], tag: str = "plant") -> str:
    now = measured(key, alpha, tag)
    return outcome(BY_KEY[key], now.settings, now.report, earlier, ARTICLE)


def test_scenarios_set_the_draft_prompt_and_the_toggles_only() -> None:
    mine = RunSettings(gamma=7, temperature=0.5, seed=3, max_tokens=40)
    for scenario in SCENARIOS:
        changed = scenario.apply(mine)
        same = dataclasses.replace(
            changed,
            draft_prompt=mine.draft_prompt,
            suffix_masking=mine.suffix_masking,
            document_masking=mine.document_masking,
        )
        assert same == mine


def visible_after(identical: float) -> str:
    """The conclusion of a run with the suffix visible and α 0.731."""
    return said("suffix-visible", 0.731, [measured("identical", identical)])


def test_the_fall_is_told_with_both_measured_numbers() -> None:
    assert "fell from 0.748 to 0.731" in said(
        "suffix-visible", 0.731, [measured("identical", 0.748)]
    )


def test_a_rise_is_not_called_a_fall() -> None:
    assert "rose from 0.700 to 0.731" in said(
        "suffix-visible", 0.731, [measured("identical", 0.700)]
    )
    assert "stayed at 0.731" in said("suffix-visible", 0.7312, [measured("identical", 0.7310)])


def test_the_masked_run_is_told_beside_both_others() -> None:
    words = said(
        "suffix-masked", 0.747, [measured("identical", 0.748), measured("suffix-visible", 0.731)]
    )
    for number in ("0.747", "0.748", "0.731"):
        assert number in words
    assert "the same, token for token" in words


def test_stopped_runs_and_other_settings_do_not_unsay_that_the_text_is_the_same() -> None:
    stopped = measured("identical", 0.7)
    assert stopped.report.summary is not None
    stopped.report.add(dataclasses.replace(stopped.report.summary, ids=(7,), reason="cancelled"))
    stopped.report.ids = [7]
    other = measured("identical", 0.7, base=RunSettings(seed=5))
    other.report.ids = [9]
    words = said("suffix-masked", 0.747, [measured("identical", 0.748), stopped, other])
    assert "the same, token for token" in words


def test_without_earlier_runs_it_says_which_to_run() -> None:
    assert "run scenario 1" in said("suffix-visible", 0.731, [])
    assert "run scenarios 1 and 2" in said("suffix-masked", 0.731, [])


def test_runs_under_other_settings_are_not_compared_with() -> None:
    other = measured("identical", 0.748, base=RunSettings(temperature=1.0))
    assert "0.748" not in said("suffix-visible", 0.731, [other])


def test_a_leaked_tag_is_named() -> None:
    words = said("document-attended", 0.7, [], tag="brokenarrow")
    assert "#brokenarrow leaks: “broken”, “arrow” are only in the document" in words
    assert "68 tokens" in words


def test_no_leak_is_told_as_counted() -> None:
    assert "No leaks: 1 of 2 tags in the summary" in said("document-masked", 0.7, [])


def test_a_stopped_run_compares_nothing() -> None:
    settings = BY_KEY["identical"].apply(RunSettings())
    assert "ended before" in outcome(BY_KEY["identical"], settings, RunReport(), [], ARTICLE)


def test_no_tags_is_said() -> None:
    now = measured("document-attended", 0.7)
    now.report.add(TagsFinished("sidecar", "", (), "[", 1, 1, 1, 1.0))
    assert "no usable tags" in outcome(
        BY_KEY["document-attended"], now.settings, now.report, [], ARTICLE
    )


def test_tags_are_compared_with_a_run_that_differs_in_the_scenario_alone() -> None:
    leaky, grounded = BY_KEY["document-attended"], BY_KEY["document-masked"]
    report = RunReport.of(whole_run())
    other = RunRecord(leaky.apply(RunSettings(task="french")), report)
    now = grounded.apply(RunSettings())
    assert "with the document attended" not in outcome(grounded, now, report, [other], "")
    same = RunRecord(leaky.apply(RunSettings()), report)
    assert "with the document attended" in outcome(grounded, now, report, [same], "")
