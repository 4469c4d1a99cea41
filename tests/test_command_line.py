"""The command line at its edges: words that do not fit, files that cannot be, a narrow terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar_core.__main__ import main
from sidecar_core.decoding.engine import Engine
from sidecar_core.events import RunFailed, to_json
from sidecar_core.models import loading
from sidecar_core.settings import MAX_ARTICLE_CHARS
from tests.faults import before_each_pass, failing
from tests.runs import whole_run
from tests.test_files import FULL, needs_full_disk
from tests.tiny_pair import tiny_engine

ROOT = Path(__file__).parents[1]
ARTICLE = "The council voted on Tuesday to replace the boilers."


@pytest.fixture
def article(tmp_path: Path) -> str:
    path = tmp_path / "article.txt"
    path.write_text(ARTICLE)
    return str(path)


@pytest.fixture
def engine() -> Engine:
    return tiny_engine()


@pytest.fixture
def loads(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Commands load the engine's pair; which ones were asked for."""
    asked: list[str] = []

    def load(name: str, **_: object) -> object:
        asked.append(name)
        return engine.pair

    monkeypatch.setattr(loading, "load_pair", load)
    return asked


Refused = Callable[..., str]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """The one line of a command that is refused: it prints nothing else."""

    def call(*arguments: str) -> str:
        assert main(arguments) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith("error: ")
        assert said.err.count("\n") == 1
        return said.err

    return call


# --- options ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required: COMMAND"),
        (["rum"], "invalid choice: 'rum'"),
        (["run"], "required: FILE"),
        (["run", "-", "--gamma", "x"], "--gamma: invalid gamma value: 'x'"),
        (["run", "-", "--colour"], "unrecognized arguments: --colour"),
        (["sweep", "a.txt", "--lengths", "1,b"], "'1,b' is not a list such as"),
        (["cost", "--batches", "x"], "'x' is not a list such as"),
        (["bench", "--precision", "fp4"], "invalid choice: 'fp4'"),
        (["record"], "required: --out"),
    ],
)
def test_words_that_do_not_fit_are_one_line(
    refused: Refused, arguments: list[str], words: str
) -> None:
    line = refused(*arguments)
    assert words in line
    assert "--help" in line


def test_help_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "--help"])
    assert ended.value.code == 0
    assert {"--gamma", "--pair", "--events"} <= set(capsys.readouterr().out.split())


@pytest.mark.parametrize("number", ["0", "-5"])
def test_less_than_one_token_of_an_article_is_refused_before_anything_is_loaded(
    loads: list[str], refused: Refused, article: str, number: str
) -> None:
    assert "it must be 1 or more" in refused("run", article, "--first-tokens", number)
    assert loads == []


def test_the_first_tokens_alone_are_used(
    loads: list[str], article: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tokens = []
    for options in ([], ["--first-tokens", "3"]):
        assert main(["run", article, "--max-tokens", "1", "--json", *options]) == 0
        tokens.append(json.loads(capsys.readouterr().out)["prompt_tokens"]["target"])
    assert tokens[1] < tokens[0]


def test_the_beginning_of_an_article_of_any_length_can_be_used(
    loads: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "long.txt"
    path.write_text("word " * MAX_ARTICLE_CHARS)
    assert main(["run", str(path), "--first-tokens", "20", "--max-tokens", "4", "--json"]) == 0
    assert '"summary"' in capsys.readouterr().out
    assert loads


@pytest.mark.parametrize("text", ["", " \n ", "a" * (MAX_ARTICLE_CHARS + 1)])
def test_the_article_is_looked_at_before_the_models_are_loaded(
    loads: list[str], refused: Refused, tmp_path: Path, text: str
) -> None:
    path = tmp_path / "article.txt"
    path.write_text(text)
    assert "The article" in refused("run", str(path))
    assert loads == []


def test_an_unknown_task_is_refused_before_anything_is_loaded(
    loads: list[str], refused: Refused, article: str
) -> None:
    assert "There is no task 'poem'" in refused("run", article, "--task", "poem")
    assert loads == []


@pytest.mark.parametrize(
    ("text", "options"),
    [(ARTICLE, ["--task", "poem"]), (ARTICLE, ["--pair", "no-such"]), (" ", ["--pair", "smol"])],
)
def test_a_run_that_is_refused_leaves_an_older_log_as_it_was(
    monkeypatch: pytest.MonkeyPatch, engine: Engine, tmp_path: Path, text: str, options: list[str]
) -> None:
    if "smol" in options:
        monkeypatch.setattr(loading, "load_pair", lambda *_, **__: engine.pair)
    path, log = tmp_path / "article.txt", tmp_path / "run.jsonl"
    path.write_text(text)
    log.write_text("an earlier run")
    assert main(["run", str(path), "--events", str(log), *options]) == 2
    assert log.read_text() == "an earlier run"


# --- files ------------------------------------------------------------------------------------


@pytest.fixture
def recording(tmp_path: Path) -> str:
    path = tmp_path / "run.jsonl"
    path.write_text("".join(to_json(event) + "\n" for event in whole_run()))
    return str(path)


@needs_full_disk
def test_a_full_disk_is_one_line_of_a_run(
    loads: list[str], article: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", article, "--max-tokens", "4", "--events", str(FULL)]) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last == "error: Cannot write /dev/full: No space left on device."


@needs_full_disk
def test_a_full_disk_is_one_line_of_a_replay(
    recording: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", recording, "--html", str(FULL)]) == 2
    said, line = capsys.readouterr().err.splitlines()
    assert said.startswith("This is a recording")
    assert line == "error: Cannot write /dev/full: No space left on device."


# --- what is shown ----------------------------------------------------------------------------


def test_a_recording_of_a_failed_run_says_what_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.jsonl"
    failed = [*whole_run()[:5], RunFailed("Out of memory; use a shorter article.", 1.0)]
    path.write_text("".join(to_json(event) + "\n" for event in failed))
    assert main(["replay", str(path), "--json"]) == 0
    said = capsys.readouterr()
    assert said.err.splitlines()[-1] == "The run failed: Out of memory; use a shorter article."
    assert json.loads(said.out)["error"] == "Out of memory; use a shorter article."


def test_a_run_that_fails_says_so_once(
    loads: list[str], engine: Engine, article: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with before_each_pass(engine.pair.target, failing(2, MemoryError())):
        assert main(["run", article, "--max-tokens", "4"]) == 2
    assert capsys.readouterr().err.count("Out of memory") == 1


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_a_narrow_terminal_shows_what_it_can(tmp_path: Path, encoding: str) -> None:
    """A process of its own: its standard output has the encoding."""
    path = tmp_path / "run.jsonl"
    path.write_text("".join(to_json(event) + "\n" for event in whole_run(tag="🐝-α")))
    command = [sys.executable, "-m", "sidecar_core", "replay", str(path)]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    shown, result = (
        subprocess.run([*command, *more], cwd=ROOT, env=environment, capture_output=True)
        for more in ([], ["--json"])
    )
    assert (shown.returncode, result.returncode) == (0, 0)
    text = shown.stdout.decode(encoding)
    assert ("α 0." in text) == (encoding == "utf-8")
    assert "acceptance rate 0." in text
    assert "🐝-α" in json.loads(result.stdout)["sidecar"]["tags"]


@pytest.mark.parametrize("command", ["replay", "articles"])
def test_commands_without_a_model_take_the_common_options_and_say_that_nothing_changes(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "No model is loaded, so --pair, --precision, --device and --seed change nothing." in said
    for option in ("--pair", "--precision", "--device", "--seed", "--json"):
        assert said.count(option) >= 1


def test_fetch_takes_the_common_options_but_names_its_pair_as_the_argument(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(loading, "fetch", lambda name, *_: (name, ""))
    options = ["--precision", "fp32", "--device", "cpu", "--seed", "3", "--json"]
    assert main(["fetch", "smol", *options]) == 0
    assert json.loads(capsys.readouterr().out) == {"pair": "smol", "ready": True}
    with pytest.raises(SystemExit):
        main(["fetch", "--help"])
    assert "not --pair" in " ".join(capsys.readouterr().out.split())
