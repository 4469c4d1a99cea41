"""The tables of guards fit the code: each piece stands where they say, and so does its test.

Whether the tests notice is tried by `python -m tests.guards`, which takes long.
"""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.guards import GUARDS
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
