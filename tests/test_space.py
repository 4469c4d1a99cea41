"""The block at the top of the README: the configuration of a Hugging Face Space.

Names and values are those of Hugging Face's "Spaces Configuration Reference".
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import metadata_load
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from sidecar_core.models.registry import PAIRS, HubModel

ROOT = Path(__file__).parent.parent

COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
KNOWN = {
    "title", "emoji", "colorFrom", "colorTo", "sdk", "sdk_version", "python_version", "app_file",
    "license", "short_description", "models", "preload_from_hub", "startup_duration_timeout",
}  # fmt: skip


@pytest.fixture(scope="module")
def space() -> dict[str, Any]:
    found = metadata_load(ROOT / "README.md")
    assert found is not None
    return found


def requirement(name: str) -> Requirement:
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    return next(Requirement(line) for line in lines if re.match(rf"{name}\b", line))


def test_it_holds_documented_names_only(space: dict[str, Any]) -> None:
    assert set(space) <= KNOWN


def test_it_is_a_gradio_space_whose_gradio_the_requirements_allow(space: dict[str, Any]) -> None:
    assert space["sdk"] == "gradio"
    assert requirement("gradio").specifier.contains(space["sdk_version"])


def test_its_python_is_one_the_project_takes_and_is_text(space: dict[str, Any]) -> None:
    asked = re.search(r'requires-python = "(.+)"', (ROOT / "pyproject.toml").read_text("utf-8"))
    assert asked
    assert isinstance(space["python_version"], str)  # unquoted, 3.10 would be 3.1
    assert SpecifierSet(asked[1]).contains(space["python_version"])


def test_its_app_file_is_there(space: dict[str, Any]) -> None:
    assert (ROOT / space["app_file"]).is_file()


def test_its_looks_are_within_the_limits(space: dict[str, Any]) -> None:
    assert {space["colorFrom"], space["colorTo"]} <= COLOURS
    assert not space["emoji"].isascii()
    assert 0 < len(space["short_description"]) <= 60
    assert re.fullmatch(r"\d+[mh]", space["startup_duration_timeout"])


def test_what_it_preloads_is_what_the_pair_small_takes(space: dict[str, Any]) -> None:
    small = PAIRS["small"]
    sources = [model.source for model in (small.target, small.draft)]
    repos = [source.repo for source in sources if isinstance(source, HubModel)]
    assert space["preload_from_hub"] == space["models"] == repos
