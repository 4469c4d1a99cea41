"""The pieces that the labs' results share: bars, intervals, progress, tables, folded sections.

Positions are percentages of the track that a piece lies in.
"""

from __future__ import annotations

from collections.abc import Sequence

from sidecar_core.view.render import attribute, text


def fill(width: float) -> str:
    """A bar from the left edge."""
    return f'<i class="fill" style="width:{width:.2f}%"></i>'


def progress(share: float) -> str:
    """How much of a row's data is there; "" once it is complete."""
    return f'<i class="read" style="width:{100 * share:.0f}%"></i>' if share < 1 else ""


def whisker(low: float, high: float, title: str) -> str:
    """An interval."""
    return (
        f'<i class="whisker" style="left:{low:.2f}%;width:{high - low:.2f}%" '
        f'title="{attribute(title)}"></i>'
    )


def table(heads: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]]) -> str:
    """A table of text cells; `heads` are (words, tooltip)."""
    head = "".join(
        f'<th scope="col" title="{attribute(tip)}">{text(name)}</th>' for name, tip in heads
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td>{text(cell)}</td>" if n else f'<th scope="row">{text(cell)}</th>'
            for n, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="lab-scroll"><table class="lab-table"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def folded(title: str, body: str) -> str:
    """A section that opens on click. `body` is HTML."""
    return f"<details><summary>{text(title)}</summary>{body}</details>"
