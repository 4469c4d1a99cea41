"""The command `cost`, whole, on tiny models."""

from __future__ import annotations

import pytest

from sidecar_core.events import PhaseChanged, RoundStarted, SummaryFinished, TokenBonus, to_json
from tests.experiments.calls import error_of, figure_words, result_of, table_of
from tests.experiments.cost.test_model import PRINTED, finished_run


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
    summary = (
        PhaseChanged("summary", 1.0),
        RoundStarted(0, 0, 1.0),
        TokenBonus(0, 0, 5, "word", 1.0, None, None, None, 3.0),
        SummaryFinished("word", (5,), "length", 1, 0, 3.0),
    )
    path = tmp_path / "run.jsonl"
    path.write_text("".join(to_json(e) + "\n" for e in (report.started, *summary, *tags) if e))
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
    assert {"modelled", "measured here", "batch", "1", "3"} <= set(figure_words(figure))


def test_without_json_there_is_a_table(capsys):
    assert "Left out:" in table_of(capsys, "cost", "--preset", "part3")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["cost", "--pair", "big", "--from-run", "{huge}"], "larger than 12,800,000 bytes"),
        (["cost", "--device-name", "abacus"], "no device 'abacus'"),
        (["cost", "--pair", "big", "--context-tokens", "10"], "more than the 10 with it"),
        (["cost", "--pair", "big", "--batches", "0"], "Batch sizes"),
        (["cost", "--pair", "big", "--idle", "1"], "idle share"),
        (["cost", "--pair", "big", "--share", "0"], "The share is 0"),
        (["cost", "--pair", "big", "--hop", "-1"], "The hop takes"),
        (["cost", "--pair", "big", "--standalone-batch", "0"], "Batch sizes"),
        (["cost", "--preset", "part3", "--share", "1"], "combined with --share"),
        (["cost", "--preset", "part3", "--measure"], "combined with --measure"),
        (["cost", "--preset", "part3", "--context-tokens", "0"], "combined with --context-tokens"),
        (["cost", "--preset", "part3", "--device-name", "A100"], "combined with --device-name"),
        (["cost", "--preset", "part3", "--idle", "0"], "combined with --idle"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(
    arguments, complaint, article, corpus, huge, engine, capsys
):
    named = [a.format(article=article, corpus=corpus, huge=huge) for a in arguments]
    assert complaint in error_of(capsys, *named)
