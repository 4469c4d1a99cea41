"""The command `record`, and `replay` of what it wrote, whole, on tiny models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sidecar_core.__main__ import main
from sidecar_core.examples import load_examples
from sidecar_core.models import loading
from sidecar_core.recording import read_recording
from sidecar_core.report import RunReport
from sidecar_core.scenarios import BY_KEY
from sidecar_core.settings import RunSettings
from tests.tiny_pair import tiny_engine

EXAMPLE = load_examples()[0]
NAMES = [f"{EXAMPLE.key}-{key}.jsonl" for key in ("identical", "suffix-visible")]


@pytest.fixture
def loads(monkeypatch, tmp_path) -> list[str]:
    """Commands load a tiny pair; which ones were asked for."""
    made, asked = tiny_engine(), []

    def load(name: str, **options: object) -> object:
        asked.append(name)
        return made.pair

    monkeypatch.setattr(loading, "load_pair", load)
    monkeypatch.setenv("SIDECAR_CACHE", str(tmp_path / "cache"))
    return asked


def record(folder: Path, *more: str) -> int:
    names = ("--examples", EXAMPLE.key, "--scenarios", "identical,suffix-visible")
    return main(["record", "--pair", "tiny", "--out", str(folder), *names, "--json", *more])


@pytest.mark.slow
def test_examples_under_scenarios_become_files_that_can_be_read(loads, tmp_path, capsys) -> None:
    assert record(tmp_path / "new" / "folder") == 0
    assert json.loads(capsys.readouterr().out)["written"] == NAMES
    for name, key in zip(NAMES, ("identical", "suffix-visible"), strict=True):
        recording = read_recording((tmp_path / "new" / "folder" / name).read_bytes())
        assert recording.header.scenario == key
        assert recording.header.title == EXAMPLE.title
        assert recording.article == EXAMPLE.text
        assert recording.settings == BY_KEY[key].apply(RunSettings())
        assert RunReport.of(recording.events).finished


@pytest.mark.slow
def test_what_is_there_stays_and_costs_no_models(loads, tmp_path, capsys) -> None:
    record(tmp_path)
    (tmp_path / NAMES[1]).unlink()
    before = (tmp_path / NAMES[0]).read_bytes()
    assert record(tmp_path) == 0
    assert (tmp_path / NAMES[0]).read_bytes() == before
    assert (tmp_path / NAMES[1]).exists()
    assert len(loads) == 2
    capsys.readouterr()
    assert record(tmp_path) == 0
    assert json.loads(capsys.readouterr().out) == {
        "folder": str(tmp_path),
        "written": [],
        "there": NAMES,
    }
    assert len(loads) == 2
    assert record(tmp_path, "--force") == 0
    assert len(loads) == 3


@pytest.mark.parametrize("option", ["--examples", "--scenarios"])
def test_an_unknown_name_is_one_clear_line(loads, tmp_path, capsys, option: str) -> None:
    assert main(["record", "--out", str(tmp_path), option, "nothing"]) == 2
    assert "There is no" in capsys.readouterr().err
    assert loads == []


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_is_one_clear_line(loads, tmp_path, capsys) -> None:
    (tmp_path / "file").write_text("")
    assert record(tmp_path / "file") == 2
    assert "Cannot write" in capsys.readouterr().err


@pytest.mark.slow
def test_a_recording_is_replayed_and_made_a_page(loads, tmp_path, capsys) -> None:
    record(tmp_path)
    page = tmp_path / "run.html"
    path = tmp_path / NAMES[0]
    capsys.readouterr()
    assert main(["replay", str(path), "--html", str(page), "--json"]) == 0
    said = capsys.readouterr()
    result = json.loads(said.out)
    report = RunReport.of(read_recording(path.read_bytes()).events)
    assert result["recording"] is True
    assert result["alpha"] == report.alpha
    assert result["header"]["date"]
    assert "article" not in result["header"]
    assert "This is a recording" in said.err
    assert "This is a recording" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("content", ["", "not a run", '{"event": "PhaseChanged"}'])
def test_a_file_that_is_no_recording_is_one_clear_line(tmp_path, capsys, content: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(content)
    assert main(["replay", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
