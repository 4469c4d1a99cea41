"""The commands `leak`, `judge` and `cost`, whole, on tiny models."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sidecar_core.__main__ import main
from sidecar_core.decoding.engine import Engine
from sidecar_core.events import to_json
from sidecar_core.models import loading
from sidecar_core.settings import RunSettings
from tests.experiments.cost.test_model import PRINTED, finished_run
from tests.tiny_pair import tiny_engine

TEXTS = ["The council voted on Tuesday to replace the boilers.", "The old quarter gets a wall."]


@pytest.fixture
def engine(monkeypatch, tmp_path) -> Engine:
    """Commands load this engine's pair; what they keep goes into a folder of the test."""
    made = tiny_engine()
    monkeypatch.setattr(loading, "load_pair", lambda *_, **__: made.pair)
    monkeypatch.setenv("SIDECAR_CACHE", str(tmp_path / "cache"))
    return made


@pytest.fixture
def article(tmp_path) -> str:
    path = tmp_path / "article.txt"
    path.write_text(TEXTS[0])
    return str(path)


@pytest.fixture
def corpus(tmp_path) -> str:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    return str(path)


def result_of(capsys, *arguments: str) -> dict:
    """The one JSON object on standard output."""
    assert main([*arguments, "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    return json.loads(out)


def error_of(capsys, *arguments: str) -> str:
    """The one line of a refused command."""
    assert main([*arguments, "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.strip().splitlines()[-1]


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


def test_leak_forces_the_summary_of_a_file(engine, article, tmp_path, capsys):
    path = tmp_path / "summary.txt"
    path.write_text("- A council votes.\n")
    result = result_of(capsys, "leak", article, "--samples", "2", "--summary", str(path))
    assert result["summary"] == "- A council votes."


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
    drawn = _words(figure)
    for name, found in result["conditions"].items():
        assert drawn.index(name) < drawn.index(f"{found['tag_rate']:.1%}", drawn.index(name))


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


def test_cost_prints_the_reference_table_without_any_model(capsys):
    rows = result_of(capsys, "cost", "--preset", "part3")["rows"]
    shown = [
        f"{r['batch']} {r['full_bytes'] / 1e9:.2f} {r['masked_bytes'] / 1e9:.2f} "
        f"{100 * r['speedup']:.0f}"
        for r in rows
    ]
    assert shown == PRINTED.split("\n")[1:-1]


def test_cost_takes_weights_and_cache_from_the_pair_and_lengths_from_the_options(capsys):
    result = result_of(
        capsys, "cost", "--pair", "big", "--device-name", "h100", "--context-tokens", "1000",
        "--masked-tokens", "200", "--batches", "1,64", "--standalone-device", "T4",
    )  # fmt: skip
    assert result["tagger"]["cache_bytes_per_token"] == 28_672
    weights = 2 * 1_543_714_304
    assert [row["full_bytes"] for row in result["rows"]] == [
        weights + batch * 1000 * 28_672 for batch in (1, 64)
    ]
    assert (result["device"]["name"], result["standalone_device"]["name"]) == ("H100", "T4")


def test_cost_takes_lengths_from_a_recorded_run(tmp_path, capsys):
    report = finished_run(document_masking=True)
    tags = [report.taggers[name].finished for name in ("sidecar", "standalone")]
    path = tmp_path / "run.jsonl"
    path.write_text("".join(to_json(e) + "\n" for e in (report.started, *tags) if e))
    result = result_of(capsys, "cost", "--pair", "small", "--from-run", str(path))
    assert (result["tokens"]["full"], result["tokens"]["masked"]) == (300, 100)


def test_cost_measures_this_machine_beside_the_model(engine, tmp_path, capsys):
    figure = tmp_path / "cost.svg"
    result = result_of(
        capsys, "cost", "--measure", "--batches", "1,3", "--steps", "1", "--figure", str(figure)
    )
    rows = result["measured"]["rows"]
    assert [row["batch"] for row in rows] == [1, 3]
    assert all(row["full_seconds"] > 0 and row["modelled_full_seconds"] > 0 for row in rows)
    assert result["measured"]["bandwidth"] > 0
    assert {"modelled", "measured here", "batch", "1", "3"} <= set(_words(figure))


def test_every_command_prints_a_table_for_people(engine, article, corpus, capsys):
    shown = {}
    for name, arguments in {
        "leak": [article, "--samples", "3", "--watch", "boilers"],
        "judge": [corpus, "--max-tokens", "8", "--no-reasons"],
        "cost": ["--preset", "part3"],
    }.items():
        assert main([name, *arguments]) == 0
        shown[name] = capsys.readouterr().out
    assert "“boilers”" in shown["leak"]
    assert "attended - masked" in shown["leak"]
    assert "sign test" in shown["judge"]
    assert "Left out:" in shown["cost"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["leak", "{article}", "--samples", "9999"], "samples is 9999"),
        (["leak", "{article}", "--samples", "0"], "samples is 0"),
        (["leak", "{article}", "--conditions", "nobody"], "no condition nobody"),
        (["leak", "{corpus}", "--summary", "{article}"], "belongs to one article"),
        (["leak", "{article}", "--figure", "leaks.png"], "not an .svg file"),
        (["leak", "missing.txt"], "Cannot read missing.txt"),
        (["leak", "{article}", "--summary", "{huge}"], "larger than 12,800,000 bytes"),
        (["cost", "--pair", "big", "--from-run", "{huge}"], "larger than 12,800,000 bytes"),
        (["judge", "{corpus}", "--max-tokens", "0"], "max_tokens is 0"),
        (["cost", "--device-name", "abacus"], "no device 'abacus'"),
        (["cost", "--pair", "big", "--context-tokens", "10"], "more than the 10 with it"),
        (["cost", "--pair", "big", "--batches", "0"], "Batch sizes"),
        (["cost", "--pair", "big", "--idle", "1"], "idle share"),
        (["cost", "--preset", "part3", "--measure"], "leave --measure"),
        (["cost", "--preset", "part3", "--context-tokens", "0"], "leave --context-tokens"),
        (["cost", "--preset", "part3", "--device-name", "A100"], "leave --device-name"),
        (["cost", "--preset", "part3", "--idle", "0"], "leave --idle"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(
    arguments, complaint, engine, article, corpus, tmp_path, capsys
):
    huge = tmp_path / "huge.txt"
    with huge.open("wb") as file:
        file.truncate(13_000_000)
    named = [a.format(article=article, corpus=corpus, huge=huge) for a in arguments]
    assert complaint in error_of(capsys, *named)


def _words(figure: Path) -> list[str]:
    """All texts of an SVG file, in order."""
    return [node.text or "" for node in ElementTree.parse(figure).iter() if "text" in node.tag]


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


def test_articles_that_were_cut_are_counted(engine, tmp_path, capsys):
    path = tmp_path / "long.txt"
    path.write_text("word " * 500)
    for longest, cut in (("500", 1), ("2499", 0)):
        result = result_of(capsys, "leak", str(path), "--samples", "1", "--max-chars", longest)
        assert result["cut"] == cut
