"""What README, docs/ and CONTRIBUTING say is there: links, files, names, commands, variables."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar_core.__main__ import parser
from sidecar_core.server.options import SETTINGS
from tests.checkout import ROOT

README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def anchors(page: Path) -> set[str]:
    """What a link may name behind a `#`, as GitHub makes it of the headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", words.lower()).replace(" ", "-") for words in headings}


def commands() -> Iterator[tuple[str, list[str]]]:
    """Each command of ours that a page shows, with the words behind the program's name."""
    for page in PAGES:
        for block in re.findall(r"```sh\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL):
            for line in block.splitlines():
                for part in line.split("&&"):
                    words = shlex.split(part, comments=True)
                    for program in ("sidecar", ".venv/bin/sidecar", "sidecar_core"):
                        if program in words and "docker" not in words:
                            yield part.strip(), words[words.index(program) + 1 :]


@each_page
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text("utf-8")):
        if not link.startswith("https://"):
            name, _, anchor = link.partition("#")
            target = page.parent / name if name else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


@each_page
def test_every_file_that_is_named_is_there(page: Path) -> None:
    text = page.read_text("utf-8")
    for path in re.findall(r"(?:assets|docs|sidecar_core|tests|\.ci)/[\w./-]*\w", text):
        assert (ROOT / path).exists(), path


@each_page
def test_every_module_that_is_named_is_there(page: Path) -> None:
    text = page.read_text("utf-8")
    for module, names in re.findall(r"^from (sidecar_core[\w.]*) import (.+)$", text, re.MULTILINE):
        for name in names.split(", "):
            assert hasattr(importlib.import_module(module), name)
    for module in re.findall(r"python -m ((?:sidecar_core|tests)[\w.]*)", text):
        assert importlib.util.find_spec(module), module


def test_every_command_is_one_that_the_program_takes() -> None:
    found = list(commands())
    assert len(found) > 15
    for shown, words in found:
        assert parser().parse_args(words).handler, shown


def test_every_variable_of_the_app_is_in_the_table() -> None:
    text = (ROOT / "docs" / "deploying.md").read_text("utf-8")
    listed = set(re.findall(r"^\| `([A-Z_]+)` \|", text, flags=re.MULTILINE))
    assert {setting.variable for setting in SETTINGS} <= listed
    assert {"SIDECAR_PASSWORD", "SIDECAR_USER", "SIDECAR_CACHE"} <= listed


def test_the_readme_is_read_in_one_sitting() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= 150
