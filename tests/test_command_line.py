"""What the command line says to bad input: one line, exit code 2, and no models loaded for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar_core.__main__ import main
from sidecar_core.models import loading
from sidecar_core.prompts import MAX_ARTICLE_CHARS
from tests.tiny_pair import tiny_engine


@pytest.fixture
def article(tmp_path: Path) -> str:
    path = tmp_path / "article.txt"
    path.write_text("The council voted on Tuesday to replace the boilers.", encoding="utf-8")
    return str(path)


@pytest.fixture
def no_models(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, **options: object) -> object:
        raise AssertionError(f"{name} was to be loaded")

    monkeypatch.setattr(loading, "load_pair", load)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that these arguments are answered with."""
    try:
        code = main(arguments)
    except SystemExit as end:
        code = end.code  # type: ignore[assignment]
    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    (line,) = said.err.splitlines()
    return line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "COMMAND"),
        (("nonsense",), "invalid choice"),
        (("run",), "FILE"),
        (("run", "x.txt", "--gamma", "x"), "--gamma"),
        (("alpha", "x.txt", "--limit", "many"), "--limit"),
        (("replay", "x.jsonl", "--nonsense"), "--nonsense"),
    ],
)
def test_arguments_that_do_not_fit_are_one_line(capsys, arguments, words):
    line = refused(capsys, *arguments)
    assert words in line
    assert "--help" in line


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--task", "sonnet"), "There is no task 'sonnet'"),
        (("--first-tokens", "0"), "--first-tokens is 0"),
        (("--first-tokens", "-3"), "--first-tokens is -3"),
        (("--seed", "-1"), "from 0 to 2,147,483,647"),
    ],
)
def test_settings_are_checked_before_the_models_are_loaded(capsys, no_models, article, more, words):
    assert words in refused(capsys, "run", article, *more)


@pytest.mark.parametrize("text", ["", " \n ", "a" * (MAX_ARTICLE_CHARS + 1)])
def test_the_article_is_looked_at_before_the_models_are_loaded(capsys, no_models, tmp_path, text):
    path = tmp_path / "article.txt"
    path.write_text(text, encoding="utf-8")
    assert "The article" in refused(capsys, "run", str(path))


def test_the_beginning_of_an_article_of_any_length_can_be_used(capsys, monkeypatch, tmp_path):
    made = tiny_engine()
    monkeypatch.setattr(loading, "load_pair", lambda name, **options: made.pair)
    path = tmp_path / "long.txt"
    path.write_text("word " * MAX_ARTICLE_CHARS, encoding="utf-8")
    assert main(["run", str(path), "--first-tokens", "20", "--max-tokens", "4", "--json"]) == 0
    assert '"summary"' in capsys.readouterr().out
