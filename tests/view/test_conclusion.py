"""What a scenario sets, and what it says came out."""

from __future__ import annotations

import dataclasses

import pytest

from sidecar_core.errors import SidecarError
from sidecar_core.events import RunFinished, TagsFinished
from sidecar_core.prompts import Article
from sidecar_core.recording import read_recording, record, write_recording
from sidecar_core.report import RunReport
from sidecar_core.scenarios import BY_KEY, SCENARIOS
from sidecar_core.settings import RunSettings
from sidecar_core.view.conclusion import compared, difference
from sidecar_core.view.player import Player, conclusion, step
from sidecar_core.view.recording_page import recording_page
from sidecar_core.view.render import text
from sidecar_core.view.run_view import LiveRun
from sidecar_core.view.runs_table import RunRecord
from tests.runs import HOSTILE, whole_run

MINE = RunSettings()
ARTICLE = "The plant closed. The Broken Arrow line is gone."


def measured(key: str, alpha: float, tag: str = "plant", base: RunSettings = MINE) -> RunRecord:
    settings = BY_KEY[key].apply(base)
    report = RunReport.of(whole_run(settings, tag))
    report.overlaps = [alpha]
    return RunRecord(settings, report, 1)


def ended(settings: RunSettings, report: RunReport, earlier: list[RunRecord], key: str = "") -> str:
    """What the page says at the end of such a run."""
    run = LiveRun(Article.of(ARTICLE), settings, earlier, BY_KEY.get(key), report=report)
    return run.view(running=False).note


def said(key: str, alpha: float, earlier: list[RunRecord], tag: str = "plant") -> str:
    now = measured(key, alpha, tag)
    return ended(now.settings, now.report, earlier, key)


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


# What changed


def test_the_fall_is_told_with_both_measured_numbers_and_the_run_it_is_measured_against() -> None:
    words = said("suffix-visible", 0.731, [measured("identical", 0.748)])
    assert (
        "α fell from 0.748 with identical prompts (run 1) to 0.731 with the suffix visible" in words
    )


def test_a_rise_is_not_called_a_fall() -> None:
    words = said("suffix-visible", 0.731, [measured("identical", 0.700)])
    assert "rose from 0.700" in words
    same = said("suffix-visible", 0.7312, [measured("identical", 0.7310)])
    assert "α stayed at 0.731 with the suffix visible, as with identical prompts in run 1" in same


def test_the_masked_run_is_told_beside_both_others() -> None:
    words = said(
        "suffix-masked", 0.747, [measured("identical", 0.748), measured("suffix-visible", 0.731)]
    )
    for number in ("0.747", "0.748", "0.731"):
        assert number in words
    assert "the same, token for token" in words


def test_an_unrelated_draft_prompt_is_told_as_measured_without_any_scenario() -> None:
    now = measured("identical", 0.232)
    settings = dataclasses.replace(now.settings, draft_prompt="unrelated", draft_text="A song")
    words = ended(settings, now.report, [measured("suffix-masked", 0.751)])
    assert "fell from 0.751 with the suffix masked (run 1)" in words
    assert (
        "to 0.232 with an unrelated draft prompt. The text is the same, token for token." in words
    )


def test_texts_of_equal_words_and_other_tokens_are_not_the_same() -> None:
    before = measured("identical", 0.748)
    before.report.ids = [*before.report.ids[:-1], 99]
    words = said("suffix-visible", 0.731, [before])
    assert "The text differs from that of run 1." in words
    assert "token for token" not in words


def test_stopped_runs_and_other_settings_do_not_unsay_that_the_text_is_the_same() -> None:
    stopped = measured("identical", 0.7)
    assert stopped.report.summary is not None
    stopped.report.add(dataclasses.replace(stopped.report.summary, ids=(7,), reason="cancelled"))
    stopped.report.ids = [7]
    other = measured("identical", 0.7, base=RunSettings(seed=5))
    other.report.ids = [9]
    words = said("suffix-masked", 0.747, [measured("identical", 0.748), stopped, other])
    assert "the same, token for token" in words


def test_runs_under_other_settings_are_compared_by_naming_them() -> None:
    other = measured("suffix-masked", 0.748, base=RunSettings(temperature=1.0))
    now = measured("suffix-masked", 0.731)
    words = ended(now.settings, now.report, [other])
    assert "fell from 0.748 (run 1) to 0.731 (temperature 0 instead of 1)" in words
    again = ended(now.settings, now.report, [measured("suffix-masked", 0.731)])
    assert "α stayed at 0.731 (the settings are the same), as it was in run 1" in again


def test_the_tile_says_how_far_alpha_is_from_the_run_it_is_compared_with() -> None:
    now = measured("suffix-visible", 0.734)
    earlier = [measured("suffix-masked", 0.747), measured("identical", 0.752)]
    run = LiveRun(Article.of(ARTICLE), now.settings, earlier, report=now.report)
    assert run.view().tiles["alpha_note"] == "−0.018 against identical"
    assert difference(now.report, now.settings, earlier[:1]) == "−0.013 against masked"
    assert difference(now.report, now.settings, [now]) == "±0.000 against run 1"
    assert difference(now.report, now.settings, []) == ""
    assert difference(RunReport.of(whole_run()[:9]), now.settings, earlier) == ""


# The run alone


def test_a_first_run_ends_in_its_own_numbers() -> None:
    report = RunReport.of(whole_run())
    words = ended(MINE, report, [])
    assert f"α is {report.alpha:.3f} with the suffix masked" in words
    assert f"{report.tokens_per_pass:.2f} tokens per target pass" in words
    assert "1 of 2 tags in the summary" in words
    assert "68 tokens" in words


def test_plain_decoding_says_that_nothing_was_drafted() -> None:
    report = RunReport.of(whole_run())
    report.overlaps = []
    assert "Nothing was drafted" in ended(dataclasses.replace(MINE, gamma=0), report, [])


def test_without_earlier_runs_it_says_which_to_run() -> None:
    assert "Run scenario 1" in said("suffix-visible", 0.731, [])
    assert "Run scenario 1" in said("suffix-masked", 0.731, [])
    assert "Run scenario 1" not in said("suffix-masked", 0.731, [measured("identical", 0.7)])


def test_a_leaked_tag_is_named() -> None:
    words = said("document-attended", 0.7, [], tag="brokenarrow")
    assert "#brokenarrow leaks: “broken”, “arrow” are only in the document" in words
    assert "68 tokens" in words


def test_a_word_of_the_masked_document_is_not_called_a_leak() -> None:
    words = said("document-masked", 0.7, [], tag="brokenarrow")
    assert "leak" not in words
    assert "“broken”, “arrow” are only in the document, which was masked (a coincidence" in words


def test_no_leak_is_told_as_counted() -> None:
    assert "No leaks: 1 of 2 tags in the summary" in said("document-masked", 0.7, [])


def test_a_stopped_run_compares_nothing() -> None:
    report = RunReport.of([RunFinished("cancelled", {}, 1.0)])
    settings = BY_KEY["identical"].apply(RunSettings())
    assert "ended before" in ended(settings, report, [], "identical")


def test_no_tags_is_said() -> None:
    now = measured("document-attended", 0.7)
    now.report.add(TagsFinished("sidecar", "", (), "[", 1, 1, 1, 1.0))
    assert "no usable hashtags" in ended(now.settings, now.report, [], "document-attended")


def test_tags_are_compared_with_a_run_that_differs_in_the_document_alone() -> None:
    leaky, grounded = BY_KEY["document-attended"], BY_KEY["document-masked"]
    report = RunReport.of(whole_run())
    now = grounded.apply(RunSettings())
    other = RunRecord(leaky.apply(RunSettings(task="french")), report, 1)
    assert "with the document attended" not in ended(now, report, [other], grounded.key)
    same = RunRecord(leaky.apply(RunSettings()), report, 1, leaks="1")
    for key in (grounded.key, ""):
        words = ended(now, report, [same], key)
        assert "In run 1, with the document attended, the sidecar attended to 68 tokens" in words
        assert "1 of 2 tags had words only in the document" in words


def test_what_is_compared_quotes_nothing_of_the_document() -> None:
    leaky, grounded = BY_KEY["document-attended"], BY_KEY["document-masked"]
    report = RunReport.of(whole_run(tag="brokenarrow"))
    same = RunRecord(leaky.apply(RunSettings()), report, 1, leaks="1")
    assert "arrow" not in compared(grounded.apply(RunSettings()), report, [same], grounded)


# Recordings


def test_a_saved_run_says_what_it_was_compared_with_wherever_it_is_opened() -> None:
    now = measured("suffix-visible", 0.731)
    run = LiveRun(
        Article.of(ARTICLE), now.settings, [measured("identical", 0.9)], BY_KEY["suffix-visible"]
    )
    for event in whole_run(now.settings):
        run.add(event)
    shown = run.view(running=False)
    saved = record(run.events, "suffix-visible", run.comparison()).named("Plant", ARTICLE)
    opened = read_recording(write_recording(saved))
    assert text(conclusion(opened)) in shown.note
    assert "fell from 0.900 with identical prompts (run 1)" in conclusion(opened)
    page = recording_page(opened)
    assert (
        f'<p id="conclusion" aria-live="polite" dir="auto">{text(conclusion(opened))}</p>' in page
    )


def test_what_a_recording_says_of_other_runs_is_text_and_bounded() -> None:
    hostile = record(whole_run()).comparing(HOSTILE)
    opened = read_recording(write_recording(hostile))
    player = Player()
    player.load(opened)
    player.at = len(opened.events) - 1
    assert "<img" not in step(player, 1).note
    assert "<img" not in recording_page(opened)
    with pytest.raises(SidecarError, match="comparison is longer"):
        read_recording(write_recording(hostile.comparing("x" * 1001)))
