"""The program as a package: built, installed into a folder of its own, and used from elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests.checkout import ROOT, copy_project, project_files

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the project, by the setuptools that is here."""
    pytest.importorskip("setuptools", "77")
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    copy_project(source)
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(out)]
    subprocess.run([*PIP, "wheel", *options, str(source)], check=True)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, installed; what it depends on is what these tests run with."""
    folder = tmp_path_factory.mktemp("site")
    options = ["--no-deps", "--no-index", "--target", str(folder)]
    subprocess.run([*PIP, "install", *options, str(wheel)], check=True)
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a Python, from an empty folder, that finds its modules in `path` first."""

    def call(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(path)},
            capture_output=True,
            text=True,
        )

    return call


@pytest.fixture
def sidecar(site: Path, run: Run) -> Run:
    """Runs the installed command."""
    return lambda *arguments: run(site, str(site / "bin" / "sidecar"), *arguments)


def test_the_command_shows_all_that_there_is(sidecar: Run) -> None:
    shown = sidecar("--help")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("usage: sidecar ")
    assert {"run", "replay", "alpha", "leak", "bench", "app"} <= set(shown.stdout.split())


def test_the_command_plays_a_recording_that_came_with_it(sidecar: Run, site: Path) -> None:
    recordings = sorted((site / "sidecar_core" / "assets" / "recordings").glob("*.jsonl"))
    shown = sidecar("replay", str(recordings[0]), "--json")
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["recording"] is True


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--port", "abc"], "--port is 'abc'"),
        (["--colour"], "unrecognized arguments: --colour; see sidecar"),
    ],
)
def test_the_command_app_takes_what_app_py_takes(
    sidecar: Run, arguments: list[str], words: str
) -> None:
    shown = sidecar("app", *arguments)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert words in shown.stderr
    assert shown.stderr.count("\n") == 1


READ = """
from sidecar_core.examples import load_examples
from sidecar_core.installed import ASSETS
from sidecar_core.page.looks import launch_arguments
from sidecar_core.recording import read_recording
from sidecar_core.view.recording_page import recording_page

looks = launch_arguments()
recording = next((ASSETS / "recordings").glob("*.jsonl")).read_text("utf-8")
whole = recording_page(read_recording(recording)).endswith("</html>\\n")
print(ASSETS, len(load_examples()), whole, len(looks["css"]) > 1000, len(looks["head"]) > 1000)
"""


@pytest.mark.slow
@pytest.mark.parametrize("installed", [True, False], ids=["installed", "checkout"])
def test_examples_template_and_looks_are_found_from_any_folder(
    run: Run, request: pytest.FixtureRequest, installed: bool
) -> None:
    path: Path = request.getfixturevalue("site") if installed else ROOT
    assets = path / "sidecar_core" / "assets" if installed else path / "assets"
    shown = run(path, "-c", READ)
    examples = len(list((ROOT / "assets" / "examples").glob("*.txt")))
    assert shown.stdout.split() == [str(assets), str(examples), *["True"] * 3], shown.stderr


def test_app_py_starts_from_any_folder(run: Run) -> None:
    shown = run(Path(), str(ROOT / "app.py"), "--help")
    assert shown.returncode == 0, shown.stderr
    assert "--max-waiting" in shown.stdout


def test_the_wheel_holds_the_package_and_its_assets_and_nothing_else(wheel: Path) -> None:
    wanted = {name for name in project_files() if name.startswith("sidecar_core/")} | {
        f"sidecar_core/{name}"
        for name in project_files()
        if name.startswith("assets/") and not name.startswith("assets/screenshots/")
    }
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == wanted


def test_what_is_required_stands_in_requirements_txt_alone(wheel: Path) -> None:
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    wanted = {str(Requirement(line)) for line in lines if line and not line.startswith("#")}
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
    found = {line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line}
    assert {str(Requirement(line)) for line in found} == wanted
    assert set(metadata.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])


def test_each_python_that_is_named_is_one_that_is_taken() -> None:
    named = [words.rpartition(" ")[2] for words in PROJECT["classifiers"]]
    assert named == ["3.11", "3.12", "3.13"]
    assert all(SpecifierSet(PROJECT["requires-python"]).contains(version) for version in named)
