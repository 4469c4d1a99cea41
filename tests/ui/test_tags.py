"""The tag columns."""

from __future__ import annotations

from sidecar_core.events import TagsFinished, TagsSkipped, TagText
from sidecar_core.report import RunReport, TaggerReport
from sidecar_core.ui.tags import bytes_text, column
from tests.ui.runs import HOSTILE

SUMMARY = "The company recalled its ice cream."
DOCUMENT = "The company recalled ice cream made at the Broken Arrow plant. Nobody else was ill."


def sidecar(*events: object) -> TaggerReport:
    return RunReport.of(events).taggers["sidecar"]  # type: ignore[arg-type]


def finished(*tags: str) -> TagsFinished:
    return TagsFinished("sidecar", "raw", tags, "[", 68, 3_700_000, 30, 1.25)


def test_each_tag_is_marked_by_where_its_words_stand() -> None:
    html = column(
        sidecar(finished("recall", "brokenarrowplant", "dragons")), SUMMARY, DOCUMENT, True
    )
    marks = [html.index(f'class="chip {place}"') for place in ("summary", "document", "neither")]
    assert marks == sorted(marks)
    assert "made at the Broken Arrow plant." in html


def test_the_costs_are_tokens_bytes_prefill_and_seconds() -> None:
    html = column(sidecar(finished("recall")), SUMMARY, DOCUMENT, True)
    for figure in ("68 tokens", "3.7 MB", "30 tokens", "1.25 s"):
        assert figure in html


def test_what_is_being_written_shows_as_it_comes() -> None:
    html = column(sidecar(TagText("sidecar", 1, '"recall', 0.1)), SUMMARY, DOCUMENT, True)
    assert 'class="raw">"recall' in html


def test_a_tagger_that_does_not_run_says_why() -> None:
    html = column(sidecar(TagsSkipped("sidecar", "Because <so>.")), "", "", True)
    assert "Because &lt;so&gt;." in html


def test_no_usable_tag_shows_the_raw_output() -> None:
    assert "[raw" in column(sidecar(finished()), SUMMARY, DOCUMENT, True)


def test_markup_in_tags_passages_and_raw_output_is_text() -> None:
    html = column(sidecar(finished(HOSTILE)), SUMMARY, HOSTILE, True)
    html += column(sidecar(TagText("sidecar", 1, HOSTILE, 0.1)), "", "", True)
    assert "<img" not in html


def test_bytes_read_in_their_best_unit() -> None:
    assert [bytes_text(n) for n in (12, 1_500, 3_700_000, 18_000_000_000)] == [
        "12 B", "1.5 kB", "3.7 MB", "18.00 GB",
    ]  # fmt: skip
