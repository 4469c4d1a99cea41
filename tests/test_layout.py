"""How the house is laid out: who may import whom, and what no file may name."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "sidecar_core"

LEVELS = [
    {"errors", "schema", "text"},
    {"events", "settings", "files"},
    {
        *("report", "recording", "scenarios", "examples", "models", "prompts", "tasks"),
        *("visibility", "grounding", "terminal"),
    },
    {"decoding"},
    {"cli"},
    {"experiments", "record_command"},
    {"view"},
    {"host"},
    {"server"},
    {"page"},
    {"__main__"},
]
"""A part imports its own level and those before it."""

TEXT_FILES = {".py", ".md", ".toml", ".txt", ".css", ".js", ".html", ".yml", ".yaml", ".sh", ""}


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """Full names of all modules that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def part(path: Path) -> str:
    """The part of the package that a file belongs to: a folder or a module of its top level."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def level(name: str) -> int:
    levels = [number for number, names in enumerate(LEVELS) if name in names]
    assert levels, f"give `{name}` a place in LEVELS"
    return levels[0]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", sources(), ids=name_of)
def test_imports_go_one_way(path: Path) -> None:
    here = part(path)
    if here == "__init__":  # the public names come from everywhere
        return
    for module in imports(path):
        package, _, rest = module.partition(".")
        there = rest.partition(".")[0]
        if (
            package == "sidecar_core"
            and there
            and (PACKAGE / there).exists() | (PACKAGE / f"{there}.py").exists()
        ):
            assert level(there) <= level(here), f"{here} imports {module}"


@pytest.mark.parametrize("path", sources(), ids=name_of)
def test_only_the_page_imports_gradio(path: Path) -> None:
    if part(path) != "page":
        assert not [module for module in imports(path) if module.split(".")[0] == "gradio"]


def test_the_light_parts_come_without_torch_and_gradio() -> None:
    heavy = {"torch", "transformers", "gradio", "plotly"}
    for name in ("errors", "events", "settings", "report", "tasks"):
        assert not {m.split(".")[0] for m in imports(PACKAGE / f"{name}.py")} & heavy


def our_files() -> list[Path]:
    """Text files of the project, without what tools leave behind."""
    tops = [path for path in ROOT.iterdir() if path.is_file()]
    folders = [PACKAGE, ROOT / "assets", ROOT / "tests", ROOT / ".ci"]
    files = [*tops, *(path for folder in folders for path in folder.rglob("*") if path.is_file())]
    return sorted(p for p in files if p.suffix in TEXT_FILES and "__pycache__" not in p.parts)


def test_no_file_names_a_folder_of_one_machine_or_the_host_of_a_package_registry() -> None:
    homes = r"(?<![\w.])/(?:root|work|home/(?!user\b)\w+|Users/\w+|mnt|tmp/\w+)/"
    hosts = r"(?:pypi|pythonhosted|npmjs|download\.pytorch)\.(?:org|com)"
    pattern = re.compile(f"{homes}|{hosts}")
    found = [
        f"{name_of(path)}: {match[0]}"
        for path in our_files()
        if path != Path(__file__)
        for match in pattern.finditer(path.read_text("utf-8", errors="replace"))
    ]
    assert not found


def test_examples_are_titled_texts_of_a_page_at_most() -> None:
    examples = sorted((ROOT / "assets" / "examples").glob("*.txt"))
    assert len(examples) >= 5
    for path in examples:
        title, blank, *body = path.read_text("utf-8").rstrip("\n").split("\n")
        assert 3 <= len(title.split()) <= 12, path.name
        assert blank == ""
        assert not title.endswith(".")
        assert 140 <= len(" ".join(body).split()) <= 400, path.name


def test_every_module_that_the_readme_names_is_there() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    imports = re.findall(r"^from (sidecar_core[\w.]*) import (.+)$", readme, flags=re.MULTILINE)
    assert imports
    for module, names in imports:
        for name in names.split(", "):
            assert hasattr(importlib.import_module(module), name)
    for path in re.findall(r"assets/[\w./-]+", readme):
        assert (ROOT / path).exists(), path
