"""The command `leak`, whole, on tiny models."""

from __future__ import annotations

import csv

import pytest

from tests.experiments.calls import error_of, figure_words, result_of, table_of


def test_leak_gives_rates_and_intervals_for_every_condition(engine, article, capsys):
    result = result_of(capsys, "leak", article, "--samples", "5", "--watch", "boilers")
    assert list(result["conditions"]) == ["attended", "masked", "recomputed", "standalone"]
    for found in result["conditions"].values():
        assert found["samples"] == 5
        assert found["rate"] == found["leaks"] / 5
        assert found["ci95"][0] <= found["rate"] <= found["ci95"][1]
        assert isinstance(found["watched"], int)
    counted = sum(sum(entry["samples"].values()) for entry in result["tags"])
    assert counted == sum(found["tags"] for found in result["conditions"].values())


@pytest.mark.slow
def test_at_temperature_0_there_is_one_list_and_no_interval(engine, article, corpus, capsys):
    for file in (article, corpus):
        result = result_of(capsys, "leak", file, "--temperature", "0", "--samples", "9")
        assert result["settings"]["samples"] == 1
        for found in result["conditions"].values():
            assert found["samples"] == (1 if file == article else 2)
            assert found["ci95"] is None


def test_leak_forces_the_summary_of_a_file(engine, article, tmp_path, capsys):
    path = tmp_path / "summary.txt"
    path.write_text("- A council votes.\n")
    result = result_of(capsys, "leak", article, "--samples", "2", "--summary", str(path))
    assert result["summary"] == "- A council votes."


@pytest.mark.slow
def test_leak_over_a_corpus_pools_tags_and_writes_csv_and_figure(engine, corpus, tmp_path, capsys):
    table, figure = tmp_path / "leaks.csv", tmp_path / "leaks.svg"
    files = ["--csv", str(table), "--figure", str(figure)]
    result = result_of(capsys, "leak", corpus, "--samples", "3", *files)
    assert result["documents"] == 2
    for found in result["conditions"].values():
        assert found["samples"] == 6
        assert found["tag_rate"] == found["tags_only_in_document"] / found["tags"]
    rows = list(csv.DictReader(table.open()))
    assert len(rows) == 8
    assert sum(int(row["tags"]) for row in rows) == sum(
        found["tags"] for found in result["conditions"].values()
    )
    drawn = figure_words(figure)
    for name, found in result["conditions"].items():
        assert drawn.index(name) < drawn.index(f"{found['tag_rate']:.1%}", drawn.index(name))


@pytest.mark.slow
def test_articles_that_were_cut_are_counted(engine, tmp_path, capsys):
    path = tmp_path / "long.txt"
    path.write_text("word " * 500)
    for longest, cut in (("500", 1), ("2499", 0)):
        result = result_of(capsys, "leak", str(path), "--samples", "1", "--max-chars", longest)
        assert result["cut"] == cut


@pytest.mark.slow
def test_without_json_there_is_a_table(engine, article, capsys):
    shown = table_of(capsys, "leak", article, "--samples", "3", "--watch", "boilers")
    assert "“boilers”" in shown
    assert "attended - masked" in shown


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["leak", "{article}", "--samples", "9999"], "samples is 9999"),
        (["leak", "{article}", "--samples", "0"], "samples is 0"),
        (["leak", "{article}", "--conditions", "nobody"], "no condition nobody"),
        (["leak", "{article}", "--conditions", ","], "at least one condition"),
        (["leak", "{corpus}", "--summary", "{article}"], "belongs to one article"),
        (["leak", "{article}", "--figure", "leaks.png"], "not an .svg file"),
        (["leak", "missing.txt"], "Cannot read missing.txt"),
        (["leak", "{article}", "--summary", "{huge}"], "larger than 12,800,000 bytes"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(
    arguments, complaint, article, corpus, huge, engine, capsys
):
    named = [a.format(article=article, corpus=corpus, huge=huge) for a in arguments]
    assert complaint in error_of(capsys, *named)
