"""Charts as SVG, for a file of its own or a piece of a page: lines, and dots with intervals.

Colours are Okabe and Ito's, taken from the page's where there is one (`var(--…)` with a fallback);
every meaning has a form beside its colour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from sidecar_core.errors import SidecarError
from sidecar_core.files import save_text

WIDTH = 640
INK, SOFT, LINE = "var(--ink, #23272c)", "var(--soft, #5b626c)", "var(--line, #d8d4ca)"
BLUE, VERMILION = "var(--blue, #0072b2)", "var(--vermilion, #d55e00)"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart: (x, y) with x above 0. `form` is its stroke's dash pattern."""

    name: str
    points: tuple[tuple[float, float], ...]
    colour: str
    form: str = ""


def intervals(title: str, rows: Sequence[tuple[str, float, Sequence[float] | None]]) -> str:
    """A dot for each (name, share, interval), with the interval as a bar through it."""
    left, right, top, step = 120, 70, 44, 34
    high = max([0.05, *(value for _, rate, ci in rows for value in (rate, *(ci or ())))])
    limit = min(1.0, math.ceil(high * 10) / 10)
    bottom = top + step * len(rows)

    def x(share: float) -> float:
        return left + (WIDTH - left - right) * share / limit

    parts = [_text(0, 18, title, weight=600)]
    for n in range(5):
        share = limit * n / 4
        parts.append(_rule(x(share), top, x(share), bottom))
        parts.append(_text(x(share), bottom + 18, f"{share:.1%}", anchor="middle", colour=SOFT))
    for n, (name, rate, ci) in enumerate(rows):
        y = top + step * (n + 0.5)
        parts.append(_text(0, y + 4, name))
        if ci:
            parts.append(_rule(x(ci[0]), y, x(ci[1]), y, BLUE, 3))
        parts.append(f'<circle cx="{x(rate):.1f}" cy="{y:.1f}" r="6" style="fill:{BLUE}"/>')
        parts.append(_text(WIDTH - right + 14, y + 4, f"{rate:.1%}", weight=600))
    spoken = "; ".join(f"{name} {rate:.1%}" for name, rate, _ in rows)
    return _svg(parts, bottom + 28, f"{title}: {spoken}")


def lines(title: str, x_label: str, drawn: Sequence[Line]) -> str:
    """Lines over a logarithmic x axis; y is a share, shown in per cent."""
    left, right, top, height = 52, 118, 40, 220
    xs = sorted({x for line in drawn for x, _ in line.points})
    ys = [y for line in drawn for _, y in line.points]
    low, high = min([0.0, *ys]), max([0.05, *ys])
    span = math.log(xs[-1] / xs[0]) or 1.0
    bottom = top + height

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            left + (WIDTH - left - right) * math.log(x / xs[0]) / span,
            bottom - height * (y - low) / (high - low),
        )

    parts = [_text(0, 18, title, weight=600)]
    for n in range(5):
        share = low + (high - low) * n / 4
        y = at(xs[0], share)[1]
        parts.append(_rule(left, y, WIDTH - right, y))
        parts.append(_text(left - 8, y + 4, f"{share:.0%}", anchor="end", colour=SOFT))
    for x in xs:
        parts.append(_text(at(x, low)[0], bottom + 18, f"{x:g}", anchor="middle", colour=SOFT))
    parts.append(_text(WIDTH - right + 24, bottom + 18, x_label, colour=SOFT))
    for n, line in enumerate(drawn):
        path = " ".join("{:.1f},{:.1f}".format(*at(*point)) for point in line.points)
        dash = f' stroke-dasharray="{line.form}"' if line.form else ""
        parts.append(
            f'<polyline points="{path}" style="fill:none;stroke:{line.colour};'
            f'stroke-width:2.5"{dash}/>'
        )
        for point in line.points:
            x, y = at(*point)
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" style="fill:{line.colour}"/>')
        parts.append(_text(WIDTH - right + 14, top + 14 + 20 * n, line.name, colour=line.colour))
    spoken = "; ".join(
        f"{line.name} " + ", ".join(f"{y:.0%} at {x:g}" for x, y in line.points) for line in drawn
    )
    return _svg(parts, bottom + 28, f"{title}: {spoken}")


def save_figure(svg: str, path: Path) -> None:
    """Write an .svg file. Raises SidecarError for another kind, and where it cannot be written."""
    check_figure_path(path)
    save_text(path, svg)


def check_figure_path(path: Path | None) -> None:
    """SidecarError for a kind of file that figures are not written as."""
    if path and path.suffix.lower() != ".svg":
        raise SidecarError(f"{path} is not an .svg file; figures are saved as .svg.")


def _svg(parts: Sequence[str], height: float, spoken: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="{escape(spoken)}" font-family="system-ui, sans-serif" font-size="13">'
        + "".join(parts)
        + "</svg>"
    )


def _text(
    x: float, y: float, words: str, *, anchor: str = "start", colour: str = INK, weight: int = 400
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" '
        f'style="fill:{colour}">{escape(words)}</text>'
    )


def _rule(x1: float, y1: float, x2: float, y2: float, colour: str = LINE, width: float = 1) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'style="stroke:{colour};stroke-width:{width:g}"/>'
    )
