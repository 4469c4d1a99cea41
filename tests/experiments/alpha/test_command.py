"""The α commands as a user calls them: on a pair of small folders, in one process and in two."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

from sidecar_core.__main__ import main
from tests.experiments.measured import ARTICLES, close_engine

ROOT = Path(__file__).resolve().parents[3]
SHORT = ("--max-tokens", "24", "--device", "cpu", "--precision", "fp32", "--json")


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> str:
    """TARGET,DRAFT: two folders with the tiny models."""
    engine = close_engine(spare=8)
    folder = tmp_path_factory.mktemp("pair")
    for name, model in (("target", engine.pair.target), ("draft", engine.pair.draft)):
        model.network.save_pretrained(folder / name)
        engine.pair.tokenizer.save_pretrained(folder / name)
    return f"{folder / 'target'},{folder / 'draft'}"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("SIDECAR_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def corpus(tmp_path) -> str:
    lines = [json.dumps({"id": f"s{n}", "text": text}) for n, text in enumerate(ARTICLES)]
    path = tmp_path / "news.jsonl"
    path.write_text("\n".join([lines[0], "", *lines[1:]]) + "\n")
    return str(path)


def call(capsys, *arguments: str) -> dict:
    """The JSON object that a command prints, and nothing else."""
    assert main(arguments) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys, *arguments: str) -> str:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err.strip().splitlines()[-1]


def test_a_draft_text_that_is_too_long_is_refused_before_anything_is_measured(capsys, pair, corpus):
    long = "many words " * 5_000
    said = refused(capsys, "alpha", corpus, "--pair", pair, "--draft-text", long, *SHORT)
    assert "error: The draft text has" in said
    assert "Shorten it" in said


def test_alpha_gives_the_fixed_keys_and_counts_what_was_skipped(capsys, pair, corpus):
    found = call(capsys, "alpha", corpus, "--pair", pair, *SHORT)
    names = ["identical", "visible", "masked", "rebased", "unrelated"]
    assert list(found["conditions"]) == names
    for condition in found["conditions"].values():
        assert 0 < condition["alpha"] < 1
        assert condition["documents"] == 3
        low, high = condition["ci95"]
        assert low <= condition["alpha"] <= high
    assert [d["id"] for d in found["per_document"]] == ["s0", "s1", "s2"]
    positions = sum(d["positions"] for d in found["per_document"])
    assert found["conditions"]["masked"]["positions"] == positions
    assert found["skipped"] == [{"where": f"{corpus}:2", "why": "the line is empty"}]
    assert found["published"]["small"]["alpha"]["identical"] == 0.6493
    assert found["settings"]["max_tokens"] == 24


def test_limit_conditions_and_max_chars_are_obeyed(capsys, pair, corpus):
    options = ("--limit", "2", "--conditions", "masked,leaky-tail", "--max-chars", "50")
    found = call(capsys, "alpha", corpus, "--pair", pair, *options, *SHORT)
    assert list(found["conditions"]) == ["masked", "leaky-tail"]
    assert len(found["per_document"]) == 2
    assert found["cut"] == 2
    assert list(found["decomposition"]) == ["tail_leak"]


def test_all_conditions_can_be_asked_for_at_once(capsys, pair, corpus):
    options = ("--limit", "1", "--conditions", "all")
    found = call(capsys, "alpha", corpus, "--pair", pair, *options, *SHORT)
    assert len(found["conditions"]) == 7


def test_without_json_there_is_a_table(capsys, pair, corpus):
    assert main(["alpha", corpus, "--pair", pair, "--limit", "2", *SHORT[:-1]]) == 0
    out = capsys.readouterr().out
    for word in ("identical", "position cost", "content leak", "1 skipped", "the posts"):
        assert word in out


def test_sweep_gives_the_fixed_keys(capsys, pair, corpus):
    found = call(capsys, "sweep", corpus, "--lengths", "100,25", "--pair", pair, *SHORT)
    assert list(found["lengths"]) == ["25", "100"]
    assert {"identical", "masked", "cost", "ci95"} <= set(found["lengths"]["25"])
    assert found["documents"] == 3
    assert main(["sweep", corpus, "--lengths", "25", "--visible", "--pair", pair, *SHORT]) == 0
    assert "visible" in json.loads(capsys.readouterr().out)["lengths"]["25"]


@pytest.mark.slow
def test_placement_sets_the_places_side_by_side(capsys, pair, corpus):
    found = call(capsys, "placement", corpus, "--limit", "2", "--pair", pair, *SHORT)
    assert list(found["placements"]) == ["natural", "rebased", "deferred", "folded"]
    assert found["placements"]["deferred"]["cost"] == 0
    assert set(found["per_document"][0]["tags"]) == {"natural", "rebased", "deferred", "folded"}
    assert main(["placement", corpus, "--limit", "1", "--pair", pair, *SHORT[:-1]]) == 0
    assert "deferred" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["alpha", "CORPUS", "--conditions", "maskd"], "no condition 'maskd'"),
        (["alpha", "CORPUS", "--conditions", ","], "at least one condition"),
        (["alpha", "missing.jsonl"], "Cannot read missing.jsonl"),
        (["alpha", "CORPUS", "--limit", "0"], "must be 1 article or more"),
        (["alpha", "CORPUS", "--max-tokens", "0"], "max_tokens"),
        (["alpha", "CORPUS", "--task", "poem"], "no task 'poem'"),
        (["sweep", "CORPUS", "--lengths", "-3"], "lengths go from 0"),
        (["sweep", "CORPUS", "--lengths", ","], "at least one length"),
        (["articles", "x.jsonl", "--count", "0"], "must be from 1"),
    ],
)
def test_bad_input_is_refused_in_one_line_before_anything_is_loaded(
    capsys, corpus, arguments, words
):
    arguments = [corpus if a == "CORPUS" else a for a in arguments]
    pair = [] if arguments[0] == "articles" else ["--pair", "there,is-none"]
    assert words in refused(capsys, *arguments, *pair)


def test_a_corpus_of_which_nothing_can_be_measured_is_refused_with_the_reason(
    capsys, pair, tmp_path
):
    (tmp_path / "long.txt").write_text("word " * 6_000)
    arguments = ("alpha", str(tmp_path / "long.txt"), "--max-chars", "100000", "--pair", pair)
    assert "No article could be measured; long: The article has" in refused(
        capsys, *arguments, *SHORT
    )


@pytest.mark.slow
def test_two_processes_give_what_one_gives_and_a_killed_launch_goes_on(
    capsys, pair, corpus, cache, tmp_path
):
    command = ["alpha", corpus, "--conditions", "identical,masked,visible", "--pair", pair, *SHORT]
    alone = call(capsys, *command)

    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    launch += ["--standalone", "-m", "sidecar_core", *command]
    environment = {**os.environ, "SIDECAR_CACHE": str(tmp_path / "other")}
    process = subprocess.Popen(
        launch,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    records = tmp_path / "other" / "alpha"
    while process.poll() is None and not list(records.glob("*.json")):
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    kept = {file: file.read_bytes() for file in records.glob("*.json")}
    assert kept

    done = subprocess.run(launch, cwd=ROOT, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    together = json.loads(done.stdout)
    assert [d["id"] for d in together["per_document"]] == ["s0", "s1", "s2"]
    for name, condition in alone["conditions"].items():
        other = together["conditions"][name]
        assert other["positions"] == condition["positions"]
        assert other["alpha"] == pytest.approx(condition["alpha"], abs=1e-6)
        assert other["ci95"] == pytest.approx(condition["ci95"], abs=1e-6)
    assert together["skipped"] == alone["skipped"]


@pytest.mark.slow
def test_placement_takes_more_processes_than_articles(pair, corpus):
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    launch += ["--standalone", "-m", "sidecar_core", "placement", corpus, "--limit", "1"]
    done = subprocess.run([*launch, "--pair", pair, *SHORT], cwd=ROOT, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["documents"] == 1


# --- the reference's corpus -------------------------------------------------------------------


def test_articles_are_written_as_a_corpus_that_the_other_commands_read(
    capsys, tmp_path, monkeypatch
):
    asked = []

    def load_dataset(*arguments, **options):
        asked.append((arguments, options))
        return ({"id": f"id{n}", "article": f"Story {n}.", "highlights": "x"} for n in range(50))

    stand_in = types.SimpleNamespace(load_dataset=load_dataset)
    monkeypatch.setitem(sys.modules, "datasets", stand_in)
    path = tmp_path / "cnn.jsonl"
    assert call(capsys, "articles", str(path), "--count", "3", "--json")["articles"] == 3
    assert asked == [(("abisee/cnn_dailymail", "3.0.0"), {"split": "test", "streaming": True})]

    from sidecar_core.experiments.corpus import read_corpus

    found = read_corpus([path]).documents
    assert [(d.id, d.text) for d in found] == [(f"id{n}", f"Story {n}.") for n in range(3)]


def test_without_the_library_or_the_hub_articles_says_what_to_do(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert "pip install datasets" in refused(capsys, "articles", str(tmp_path / "cnn.jsonl"))

    def unreachable(*_, **__):
        raise ConnectionError("no route")

    stand_in = types.SimpleNamespace(load_dataset=unreachable)
    monkeypatch.setitem(sys.modules, "datasets", stand_in)
    line = refused(capsys, "articles", str(tmp_path / "cnn.jsonl"))
    assert "cannot be fetched from the Hugging Face Hub (no route)" in line
    assert not (tmp_path / "cnn.jsonl").exists()


def test_a_result_names_its_corpus_by_the_words_that_were_used(capsys, pair, corpus, tmp_path):
    copy = tmp_path / "renamed.jsonl"
    copy.write_text(Path(corpus).read_text())
    calls = ([corpus], [str(copy)], [corpus, "--limit", "2"], [corpus, "--max-chars", "60"])
    few = ("--pair", pair, "--conditions", "identical", *SHORT)
    found = [call(capsys, "alpha", *arguments, *few)["corpus"] for arguments in calls]
    assert [one["articles"] for one in found] == [3, 3, 2, 3]
    assert found[0]["files"] == [corpus]
    digests = [one["sha256"] for one in found]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3
