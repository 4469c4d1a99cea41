"""The tag columns."""

from __future__ import annotations

import pytest

from sidecar_core.events import TagsFinished, TagsSkipped, TagText
from sidecar_core.report import RunReport, TaggerReport
from sidecar_core.settings import RunSettings
from sidecar_core.tasks import FREE, TASKS
from sidecar_core.view.run_view import LiveRun
from sidecar_core.view.runs_table import runs_table
from sidecar_core.view.tag_column import NOUNS, SIGNS, bytes_text, column, unseen
from tests.runs import HOSTILE

SUMMARY = "The company recalled its ice cream."
DOCUMENT = "The company recalled ice cream made at the Broken Arrow plant. Nobody else was ill."


def sidecar(*events: object) -> TaggerReport:
    return RunReport.of(events).taggers["sidecar"]  # type: ignore[arg-type]


def finished(*tags: str) -> TagsFinished:
    return TagsFinished("sidecar", "raw", tags, "[", 68, 3_700_000, 30, 1.25)


def test_each_tag_is_marked_by_where_its_words_stand() -> None:
    tags = ("recall", "brokenarrowplant", "dragons")
    html = column(sidecar(finished(*tags)), SUMMARY, DOCUMENT)["list"]
    marks = [html.index(f'class="chip {place}"') for place in ("summary", "document", "neither")]
    assert marks == sorted(marks)
    assert "made at the Broken Arrow plant." in html


def test_the_costs_are_tokens_bytes_prefill_and_seconds() -> None:
    shown = column(sidecar(finished("recall")), SUMMARY, DOCUMENT)
    costs = [shown[name] for name in ("tokens", "bytes", "prefilled", "time")]
    assert costs == ["68 tokens", "3.7 MB", "30 tokens", "1.25 s"]


def test_what_is_being_written_only_grows() -> None:
    first = column(sidecar(TagText("sidecar", 1, '"rec', 0.1)), "", "")["raw"]
    both = sidecar(TagText("sidecar", 1, '"rec', 0.1), TagText("sidecar", 2, "all", 0.2))
    assert column(both, "", "")["raw"] == first + "all"


def test_a_tagger_that_does_not_run_says_why() -> None:
    shown = column(sidecar(TagsSkipped("sidecar", "Because <so>.")), "", "")
    assert "Because &lt;so&gt;." in shown["list"]


def test_no_usable_tag_shows_the_raw_output() -> None:
    assert column(sidecar(finished()), SUMMARY, DOCUMENT)["raw"] == "[raw"


def test_markup_in_tags_passages_and_raw_output_is_text() -> None:
    shown = column(sidecar(finished(HOSTILE)), SUMMARY, HOSTILE)
    raw = column(sidecar(TagText("sidecar", 1, HOSTILE, 0.1)), "", "")["raw"]
    assert "<img" not in shown["list"] + raw
    useless = TagsFinished("sidecar", HOSTILE, (), HOSTILE, 68, 3_700_000, 30, 1.25)
    assert "<img" not in column(sidecar(useless), "", "")["raw"]


def test_bytes_read_in_their_best_unit() -> None:
    assert [bytes_text(n) for n in (12, 1_500, 3_700_000, 18_000_000_000)] == [
        "12 B", "1.5 kB", "3.7 MB", "18.00 GB",
    ]  # fmt: skip


@pytest.mark.parametrize("task", ["headline", "category", "french", "free"])
def test_a_text_is_shown_as_it_is_without_grounding(task: str) -> None:
    shown = column(sidecar(finished("Ice <b>cream</b> recalled")), SUMMARY, DOCUMENT, task)
    assert "Ice &lt;b&gt;cream&lt;/b&gt; recalled" in shown["list"]
    assert "chip" not in shown["list"]


def test_keywords_are_grounded_and_have_no_hash_sign() -> None:
    shown = column(sidecar(finished("broken arrow")), SUMMARY, DOCUMENT, "keywords")
    assert 'class="chip document"' in shown["list"]
    assert ">broken arrow<" in shown["list"]


def test_a_word_of_a_document_that_the_tagger_never_saw_is_called_a_coincidence() -> None:
    masked, attended = RunSettings(), RunSettings(document_masking=False)
    assert unseen("sidecar", attended) == ""
    assert "cache" in unseen("sidecar", masked)
    assert unseen("standalone", attended) == unseen("standalone", masked) == "a coincidence"
    tags = sidecar(finished("brokenarrow"))
    seen = column(tags, SUMMARY, DOCUMENT)["list"]
    assert 'class="chip document"' in seen
    assert "coincidence" not in seen
    shown = column(tags, SUMMARY, DOCUMENT, unseen=unseen("sidecar", masked))["list"]
    assert 'class="chip document unseen"' in shown
    assert (
        "only in the document: a coincidence, or from the summary's columns in the cache" in shown
    )


def test_a_leaked_tag_is_a_button_with_its_passage_as_text() -> None:
    document = f'The Broken "Arrow" {HOSTILE} plant.'
    leaked = column(sidecar(finished("brokenarrow", "recall")), SUMMARY, document, find=True)[
        "list"
    ]
    assert leaked.count("<button") == 1
    assert "<img" not in leaked
    assert 'data-passage="The Broken &quot;Arrow&quot; &lt;img' in leaked
    assert "<button" not in column(sidecar(finished("brokenarrow")), SUMMARY, document)["list"]


def test_every_task_has_a_name_for_its_result() -> None:
    assert set(NOUNS) == {*TASKS, FREE}
    assert set(SIGNS) <= set(TASKS)


def test_the_name_of_an_unknown_task_is_text() -> None:
    assert column(sidecar(finished("x")), "", "", HOSTILE)["what"].startswith("&lt;img")
    run = LiveRun(None, RunSettings(task=HOSTILE))
    assert "<img" not in runs_table([run.record(1)])
