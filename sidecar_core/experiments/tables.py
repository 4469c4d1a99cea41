"""What the experiments' tables share: columns, signed numbers, intervals, CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

FORMULA_SIGNS = ("=", "+", "-", "@")


def as_csv(rows: Sequence[Sequence[Any]]) -> str:
    """Rows as CSV. Text that a spreadsheet would take for a formula gets an apostrophe before it;
    numbers stay as they are."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([_inert(cell) for cell in row] for row in rows)
    return out.getvalue()


def _inert(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    cell = cell.replace("\r", "\n")  # the writer does not quote the one
    return f"'{cell}" if cell.lstrip().startswith(FORMULA_SIGNS) or cell[:1] == "\t" else cell


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells, the first column to the left, the others to the right.

    >>> print(columns([["batch", "GB"], ["1", "3.11"]]))
    batch    GB
    1      3.11
    """
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if n else cell.ljust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def bounds(interval: Sequence[float] | None, form: str = ".4f") -> str:
    """An interval; "–" where there is none."""
    return "–" if interval is None else f"[{interval[0]:{form}}, {interval[1]:{form}}]"


def signed(value: float | None) -> str:
    """With four digits; "–" for None."""
    return "–" if value is None else f"{value:+.4f}"


def percent(value: float | None, sign: str = "+") -> str:
    """A share; "–" for None.

    >>> percent(0.125), percent(0.125, ""), percent(None)
    ('+12.5%', '12.5%', '–')
    """
    return "–" if value is None else f"{value:{sign}.1%}"


def models(result: dict[str, Any]) -> str:
    """The pair in words."""
    models = result["models"]
    return f"{models['target']} with {models['draft']}, {result['precision']}"


def skipped(result: dict[str, Any]) -> list[str]:
    """What was passed over, with reasons; nothing where nothing was."""
    found = result["skipped"]
    lines = [f"skipped {s['where']}: {s['why']}" for s in found]
    return ["", f"{len(found)} skipped, {result['cut']} cut", *lines] if found else []
