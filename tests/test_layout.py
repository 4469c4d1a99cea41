"""How the house is laid out: who may import whom, and what no file may name."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "sidecar_core"

ROOMS = (
    *("errors", "schema", "text", "installed", "language", "settings", "events", "files"),
    *("prompts", "tasks", "main_tasks"),
    *("report", "recording", "scenarios", "examples", "grounding", "visibility", "terminal"),
    *("models", "decoding", "sidecar_core", "cli", "record_command"),
    *("experiments", "view", "host", "server", "page", "__main__"),
)
"""The modules and folders of the package's top level. Each imports only itself and those before
it. `sidecar_core` is the package's root, with its public names."""

MOST_FILES = 15
"""In a folder of the package; the top level has a line for each of its files in ROOMS."""

TEXT_FILES = {".py", ".md", ".toml", ".txt", ".css", ".js", ".html", ".yml", ".yaml", ".sh", ""}


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """Full names of all modules that a file imports, anywhere in it. `from sidecar_core import x`
    imports the module `x` if there is one, else the package's root."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            assert node.module is not None
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = {name for name in names if is_module(name)}
            yield from modules
            if names - modules:
                yield node.module
        elif isinstance(node, ast.Call) and "import" in ast.unparse(node.func):
            yield from (
                a.value
                for a in node.args
                if isinstance(a, ast.Constant) and isinstance(a.value, str)
            )


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def module_of(path: Path) -> str:
    """A file's full name as a module."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def ours(path: Path) -> set[str]:
    """The modules of this package that a file imports."""
    return {m for m in imports(path) if m.split(".")[0] == "sidecar_core"}


def room(module: str) -> str:
    """The part of the top level that a module belongs to."""
    return module.split(".")[1] if "." in module else module


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", sources(), ids=name_of)
def test_rooms_import_only_earlier_rooms(path: Path) -> None:
    here = room(module_of(path))
    assert here in ROOMS, f"give `{here}` a place in ROOMS"
    later = ROOMS[ROOMS.index(here) + 1 :]
    assert not [module for module in ours(path) if room(module) in later]


def test_no_module_imports_itself_by_a_detour() -> None:
    graph = {module_of(path): ours(path) - {module_of(path)} for path in sources()}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the modules


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("import sidecar_core", {"sidecar_core"}),
        ("from sidecar_core import load_pair", {"sidecar_core"}),
        ("from sidecar_core import report", {"sidecar_core.report"}),
        ("from sidecar_core.view import pace", {"sidecar_core.view.pace"}),
        ("def f():\n    import sidecar_core.view.pace", {"sidecar_core.view.pace"}),
        ("importlib.import_module('sidecar_core.page')", {"sidecar_core.page"}),
    ],
)
def test_every_way_to_import_is_seen(line: str, found: set[str], tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(line)
    assert ours(tmp_path / "module.py") == found


def test_no_room_holds_more_than_fifteen_files() -> None:
    files = [path for path in sources() if path.name != "__init__.py"]
    rooms = Counter(path.parent for path in files if path.parent != PACKAGE)
    assert {name_of(folder): n for folder, n in rooms.items() if n > MOST_FILES} == {}


def test_a_class_name_is_used_once() -> None:
    names = Counter(
        node.name
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("path", sources(), ids=name_of)
def test_only_the_page_imports_gradio(path: Path) -> None:
    if room(module_of(path)) != "page":
        assert not [module for module in imports(path) if module.split(".")[0] == "gradio"]


def test_the_light_parts_come_without_torch_and_gradio() -> None:
    heavy = {"torch", "transformers", "gradio", "plotly"}
    for name in ("errors", "events", "settings", "report", "tasks", "main_tasks"):
        assert not {m.split(".")[0] for m in imports(PACKAGE / f"{name}.py")} & heavy


def our_files() -> list[Path]:
    """Text files of the project, without what tools leave behind."""
    tops = [path for path in ROOT.iterdir() if path.is_file()]
    folders = [PACKAGE, ROOT / "assets", ROOT / "docs", ROOT / "tests", ROOT / ".ci"]
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
