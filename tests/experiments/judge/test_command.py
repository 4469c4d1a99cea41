"""The command `judge`, whole, on tiny models."""

from __future__ import annotations

import pytest

from sidecar_core.settings import RunSettings
from tests.experiments.calls import TEXTS, error_of, result_of, table_of


def test_judge_counts_and_goes_on_where_it_stopped(engine, corpus, tmp_path, capsys):
    kept = tmp_path / "verdicts.jsonl"
    arguments = ("judge", corpus, "--verdicts", str(kept), "--max-tokens", "12")
    first = result_of(capsys, *arguments)
    assert first["comparisons"] == 2
    assert first["ties"] + first["sidecar_wins"] + first["standalone_wins"] == 2
    assert 0 < first["p_value"] <= 1
    size = kept.stat().st_size
    assert result_of(capsys, *arguments) == first
    assert kept.stat().st_size == size


@pytest.mark.slow
def test_documents_masking_is_what_the_judged_run_used(engine, corpus, tmp_path, capsys):
    kept = tmp_path / "verdicts.jsonl"
    arguments = ("judge", corpus, "--verdicts", str(kept), "--max-tokens", "12", "--no-reasons")
    masked = result_of(capsys, *arguments)
    attended = result_of(capsys, *arguments, "--no-document-masking")
    lists = [[d["sidecar"] for d in result["per_document"]] for result in (masked, attended)]
    runs = [
        [e.stream(text, RunSettings(document_masking=masking, max_tokens=12)) for text in TEXTS]
        for e, masking in ((engine, True), (engine, False))
    ]
    wanted = [[_sidecar_tags(run) for run in each] for each in runs]
    assert lists == wanted


def _sidecar_tags(events) -> list[str]:
    done = [e for e in events if type(e).__name__ == "TagsFinished" and e.tagger == "sidecar"]
    return list(done[0].tags)


def test_without_json_there_is_a_table(engine, corpus, capsys):
    assert "sign test" in table_of(capsys, "judge", corpus, "--max-tokens", "8", "--no-reasons")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["judge", "{corpus}", "--max-tokens", "0"], "max_tokens is 0"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(
    arguments, complaint, article, corpus, huge, engine, capsys
):
    named = [a.format(article=article, corpus=corpus, huge=huge) for a in arguments]
    assert complaint in error_of(capsys, *named)
