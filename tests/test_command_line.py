"""The command line at its edges: words that do not fit, files that cannot be, a narrow terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar_core.__main__ import main
from sidecar_core.events import to_json
from sidecar_core.models import loading
from tests.test_files import FULL, needs_full_disk
from tests.tiny_pair import tiny_engine
from tests.ui.runs import whole_run

ARTICLE = "The council voted on Tuesday to replace the boilers."


@pytest.fixture
def article(tmp_path: Path) -> str:
    path = tmp_path / "article.txt"
    path.write_text(ARTICLE)
    return str(path)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Commands load a tiny pair; which ones were asked for."""
    asked: list[str] = []

    def load(name: str, **_: object) -> object:
        asked.append(name)
        return tiny_engine().pair

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
        (["run", "-", "--gamma", "x"], "--gamma: invalid int value: 'x'"),
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
