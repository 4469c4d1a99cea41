"""The tables of guards fit the code: each piece stands where they say, and so does its test.

Whether the tests notice is tried by `python -m tests.guards`, which takes long; here it is shown
that it would tell.
"""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.guards import GUARDS
from tests.guards.__main__ import is_noticed, main
from tests.guards.guard import Guard

ROOT = Path(__file__).resolve().parents[1]


@cache
def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.against)
def test_a_guard_stands_once_in_its_file_and_can_be_taken_out(guard: Guard) -> None:
    source = read(guard.path)
    assert source.count(guard.piece) == 1
    taken_out = guard.out_of(source)
    assert ast.dump(ast.parse(taken_out)) != ast.dump(ast.parse(source))
    compile(taken_out, guard.path, "exec")


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.against)
def test_the_test_of_a_guard_is_there(guard: Guard) -> None:
    name, _, test = guard.test.partition("::")
    defined = [node.name for node in ast.parse(read(f"tests/{name}")).body if is_function(node)]
    assert defined.count(test.partition("[")[0]) == 1


def is_function(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef)


def test_every_guard_has_a_name_of_its_own() -> None:
    assert [name for name, n in Counter(guard.against for guard in GUARDS).items() if n > 1] == []


CODE = "def positive(n):\n    return n if n > 0 else 0\n"
TESTS = """
from sidecar_core.code import positive

def test_with_a_number_that_the_guard_lets_pass():
    assert positive(3) == 3

def test_with_a_number_that_it_does_not():
    assert positive(-3) == 0
"""


@pytest.mark.parametrize(
    ("test", "instead", "noticed"),
    [
        ("test_with_a_number_that_it_does_not", "", True),
        ("test_with_a_number_that_the_guard_lets_pass", "", False),
        ("test_that_is_not_there", "", False),
        ("test_with_a_number_that_it_does_not", " if", False),  # no code any more
    ],
)
def test_a_removal_that_no_test_notices_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], test: str, instead: str, noticed: bool
) -> None:
    for name, text in {
        "sidecar_core/__init__.py": "",
        "sidecar_core/code.py": CODE,
        "tests/test_code.py": TESTS,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    guard = Guard(
        "less than nothing", "code.py", " if n > 0 else 0", instead, f"test_code.py::{test}"
    )
    assert is_noticed(guard, tmp_path) == noticed
    assert ("UNNOTICED  less than nothing" in capsys.readouterr().out) != noticed
    assert (tmp_path / guard.path).read_text() == CODE


def test_a_word_that_no_guard_has_is_told() -> None:
    assert main(["no such guard"]) == 2
