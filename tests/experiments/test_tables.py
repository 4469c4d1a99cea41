"""Tables as files."""

from __future__ import annotations

import csv
import io

import pytest

from sidecar_core.experiments.alpha.tables import alpha_csv
from sidecar_core.experiments.leak.over_corpus import table_csv
from sidecar_core.experiments.tables import as_csv


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


@pytest.mark.parametrize(
    "cell", ["=1+1", "+1", "-2+3", "@SUM(A1)", "\t=1", " =1", "\n=1", '=A1&"x"']
)
def test_no_cell_can_become_a_formula(cell: str) -> None:
    assert rows_of(as_csv([["id", 1], [cell, 2]])) == [["id", "1"], ["'" + cell, "2"]]


def test_numbers_and_plain_text_stay_as_they_are() -> None:
    rows = [["a=b", -1.5, None, ""], ["one-two", 3, True, 'a, "b"']]
    assert rows_of(as_csv(rows)) == [[("" if c is None else str(c)) for c in row] for row in rows]


def test_every_table_is_written_that_way() -> None:
    found = {"id": "=1+1", "positions": 2, "prompt_tokens": 3, "alpha": {}, "agreement": {}}
    alpha = alpha_csv({"conditions": {}, "per_document": [found]})
    assert "\n'=1+1,2,3\n" in alpha
    assert table_csv([{"document": "=1+1", "leaks": -1}]) == "document,leaks\n'=1+1,-1\n"
    assert table_csv([]) == ""
