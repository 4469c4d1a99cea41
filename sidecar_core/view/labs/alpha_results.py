"""The α lab's results as HTML: bars by condition, cost by suffix length, tables.

Pure functions of pooled results (`pooling.pool`, `sweep.pool_sweep`) and of `ConditionBar`s. Lines
stretch with the page, words are HTML, positions are percentages. Everything that comes from a
visitor passes through `text` or `attribute`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sidecar_core.experiments.alpha.conditions import ABOUT
from sidecar_core.experiments.alpha.published import PUBLISHED
from sidecar_core.experiments.tables import bounds, percent, signed
from sidecar_core.report import shown
from sidecar_core.view.labs.lab_parts import fill, folded, progress, table, whisker
from sidecar_core.view.render import attribute, text

MARKS = {"small": "▲", "big": "◆"}
"""The mark of each of the posts' pairs."""

Interval = Sequence[float] | None


@dataclass(frozen=True, slots=True)
class ConditionBar:
    """One condition so far. `done` is the share of its positions that were read, 1 at the end;
    `gap` is α minus that of identical prompts, `relative` the same as a share of the latter."""

    name: str
    alpha: float | None = None
    ci95: Interval = None
    gap: float | None = None
    gap_ci95: Interval = None
    relative: float | None = None
    done: float = 0.0


def bars(rows: Sequence[ConditionBar]) -> str:
    """A row for each condition: its α, and the difference from `identical`."""
    reach = _reach(rows)
    spoken = "; ".join(f"{r.name} {r.alpha:.3f}" for r in rows if r.alpha is not None)
    body = "".join(_row(row, reach) for row in rows)
    label = attribute(f"alpha by condition: {spoken}")
    return (
        f'<div class="lab-bars" role="img" aria-label="{label}">'
        '<div class="lab-row lab-heads"><span></span><span>α, from 0 to 1</span>'
        f"<span>difference from identical, ±{reach:.2g}</span></div>{body}</div>{_legend()}"
    )


def _reach(rows: Sequence[ConditionBar]) -> float:
    """Half the width of the differences' axis. `unrelated` may exceed it: its collapse would make
    all other differences invisible."""
    ends = [0.01]
    for row in rows:
        if row.name != "unrelated" and row.gap is not None:
            ends += [abs(row.gap), *map(abs, row.gap_ci95 or ())]
    ends += [abs(_published_gap(pair, r.name) or 0.0) for r in rows for pair in PUBLISHED]
    return max(ends) * 1.15


def _row(row: ConditionBar, reach: float) -> str:
    about = ABOUT[row.name]
    bar = interval = number = ""
    if row.alpha is not None:
        bar = fill(100 * row.alpha)
        number = f"<b>{row.alpha:.4f}</b>"
        interval = _interval(row.ci95, lambda v: 100 * v)
    marks = "".join(
        _mark(name, 100 * pair.alpha[row.name], f"{pair.alpha[row.name]:.4g}")
        for name, pair in PUBLISHED.items()
        if row.name in pair.alpha
    )
    return (
        f'<div class="lab-row"><div class="lab-name" title="{attribute(about)}">{text(row.name)}'
        f'<small>{text(about)}</small></div><div class="lab-cell"><div class="lab-track">'
        f"{progress(row.done)}{bar}{interval}{marks}</div>{number}</div>"
        f'<div class="lab-cell"><div class="lab-track lab-gaps"><i class="zero"></i>'
        f"{_gap(row, reach)}</div>{_gap_number(row)}</div></div>"
    )


def _gap(row: ConditionBar, reach: float) -> str:
    def at(value: float) -> float:
        return 50 + 50 * max(-1.0, min(1.0, value / reach))

    drawn = ""
    if row.gap is not None and row.name != "identical":
        low, high = sorted((50.0, at(row.gap)))
        beyond = " beyond" if abs(row.gap) > reach else ""
        drawn = (
            f'<i class="gap{" up" if row.gap > 0 else ""}{beyond}" '
            f'style="left:{low:.2f}%;width:{high - low:.2f}%"></i>'
        )
        if not beyond:
            drawn += _interval(row.gap_ci95, at)
    for name in PUBLISHED:
        if gap := _published_gap(name, row.name):
            drawn += _mark(name, at(gap), signed(gap))
    return drawn


def _gap_number(row: ConditionBar) -> str:
    if row.gap is None or row.name == "identical":
        return ""
    return f"<b>{signed(row.gap)}<small>{percent(row.relative)}</small></b>"


def _published_gap(pair: str, condition: str) -> float | None:
    alpha = PUBLISHED[pair].alpha
    return alpha[condition] - alpha["identical"] if condition in alpha else None


def _interval(interval: Interval, at: Callable[[float], float]) -> str:
    if interval is None:
        return ""
    low, high = map(at, interval)
    return whisker(low, high, f"95 % interval over articles: {bounds(interval)}")


def _mark(pair: str, left: float, value: str) -> str:
    title = attribute(f"the posts, {PUBLISHED[pair].models}: {value}")
    return f'<i class="mark {pair}" style="left:{left:.2f}%" title="{title}">{MARKS[pair]}</i>'


def _legend() -> str:
    pairs = "".join(
        f'<li><i class="mark {name}">{MARKS[name]}</i> the posts, {text(pair.models)}</li>'
        for name, pair in PUBLISHED.items()
    )
    return (
        f'<ul class="lab-legend">{pairs}'
        '<li><i class="whisker"></i> 95 % interval over articles</li></ul>'
    )


# --- suffix length ----------------------------------------------------------------------------


def cost_chart(lengths: Mapping[str, Mapping[str, Any]]) -> str:
    """Position cost by suffix length: ours with intervals, and the posts' lines.

    `lengths` is that of a pooled sweep. The lengths are drawn at equal distances.
    """
    names = list(lengths)
    ours = {n: point["cost"] for n, point in lengths.items()}
    lines = {
        pair: {str(n): cost for n, cost in found.cost.items() if str(n) in lengths}
        for pair, found in PUBLISHED.items()
    }
    values = [0.0, *ours.values(), *(v for line in lines.values() for v in line.values())]
    values += [v for point in lengths.values() for v in point["ci95"] or ()]
    low, high = min(values), max(values)
    room = 0.1 * (high - low) or 0.01
    low, high = low - room, high + room

    def x(name: str) -> float:
        return 100 * (names.index(name) + 0.5) / len(names)

    def y(value: float) -> float:
        return 100 * (value - low) / (high - low)

    def path(line: Mapping[str, float], css: str) -> str:
        points = " ".join(f"{x(n):.2f},{100 - y(v):.2f}" for n, v in line.items())
        return f'<polyline class="{css}" points="{points}"/>'

    svg = "".join(path(line, pair) for pair, line in lines.items()) + path(ours, "ours")
    marks = "".join(
        f'<i class="mark {pair}" style="left:{x(n):.2f}%;bottom:{y(v):.2f}%" '
        f'title="{attribute(f"the posts, {PUBLISHED[pair].models}: {signed(v)}")}">'
        f"{MARKS[pair]}</i>"
        for pair, line in lines.items()
        for n, v in line.items()
    )
    for n, point in lengths.items():
        if point["ci95"]:
            bottom, top = map(y, point["ci95"])
            style = f"left:{x(n):.2f}%;bottom:{bottom:.2f}%;height:{top - bottom:.2f}%"
            marks += f'<i class="upright" style="{style}"></i>'
        title = attribute(f"{n} tokens: {signed(point['cost'])} {bounds(point['ci95'], '+.4f')}")
        style = f"left:{x(n):.2f}%;bottom:{y(point['cost']):.2f}%"
        marks += f'<i class="dot" style="{style}" title="{title}"></i>'
    grid = "".join(
        f'<span class="tick" style="bottom:{y(v):.2f}%">{signed(v)[:-1]}</span>'
        for v in (min(values), max(values))
        if abs(y(v) - y(0)) > 8
    )
    spoken = "; ".join(f"{n} tokens {signed(cost)}" for n, cost in ours.items())
    ticks = "".join(f'<span style="left:{x(n):.2f}%">{n}</span>' for n in names)
    return (
        f'<div class="lab-chart" role="img" aria-label="{attribute(f"position cost: {spoken}")}">'
        f'<div class="lab-plot"><div class="lab-zero" style="bottom:{y(0):.2f}%"><span>0</span>'
        f'</div>{grid}<svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">'
        f'{svg}</svg>{marks}</div><div class="lab-ticks">{ticks}</div>'
        '<p class="lab-axis">masked suffix, tokens; height: α lost to shifted positions</p>'
        f"</div>{_legend()}"
    )


# --- words and tables -------------------------------------------------------------------------


def verdict(result: Mapping[str, Any]) -> str:
    """The decomposition in words; "" if there is none."""
    parts = result.get("decomposition", {})
    said = []
    for part, words in (
        ("position_cost", "Masking the suffix but keeping its positions free changes α by"),
        ("content_leak", "reading the suffix changes it by a further"),
        ("tail_leak", "reading it through the chat tail alone would change it by"),
    ):
        if part in parts:
            found = parts[part]
            doubt = ""
            if found["ci95"]:
                low, high = found["ci95"]
                doubt = " " + bounds([-high, -low], "+.4f")
            said.append(f"{words} <b>{signed(-found['difference'])}</b>{doubt}")
    if not said:
        return ""
    count = result["documents"]
    over = "one article, no intervals" if count == 1 else f"{count} articles, 95 % intervals"
    return f"<p>{'; '.join(said)} ({over}).</p>"


def tables(result: Mapping[str, Any]) -> str:
    """The figures of a pooled `alpha` in full: conditions, depth, draft blocks, articles."""
    names = list(result["conditions"])
    rows = []
    for name, found in result["conditions"].items():
        gap = result["differences"].get(name, {})
        rows.append(
            [
                name,
                shown(found["alpha"], 4),
                bounds(found["ci95"]),
                signed(gap.get("difference")),
                bounds(gap.get("ci95"), "+.4f"),
                shown(found["agreement"]),
                shown(found["expected_tokens_per_pass"], 2),
                shown(found["greedy"]["tokens_per_pass"], 2),
            ]
        )
    heads = [
        ("condition", ""),
        ("α", "pooled over all positions"),
        ("95 %", "over articles, Student's t"),
        ("vs. identical", "paired difference"),
        ("95 %", "over articles, Student's t"),
        ("same top token", "how often draft and target have the same likeliest token"),
        ("tokens/pass", f"expected at temperature 1 and γ = {result['gamma']}, by the closed form"),
        ("at temp. 0", "tokens per pass of the greedy run, replayed round by round"),
    ]
    depth = [
        [f"{band['from']}–{band['to']}", str(band["positions"])]
        + [shown(band["alpha"][name], 4) for name in names]
        for band in result["depth"]
    ]
    places = [
        [str(number)]
        + [shown(result["conditions"][n]["greedy"]["by_place"][number - 1]["alpha"]) for n in names]
        for number in range(1, result["gamma"] + 1)
    ]
    articles = [
        [d["id"], str(d["positions"]), *(shown(d["alpha"][name], 4) for name in names)]
        for d in result["per_document"]
    ]
    plain = [(name, ABOUT.get(name, "")) for name in names]
    return (
        table(heads, rows)
        + folded(
            "α by position in the summary",
            table([("position", ""), ("tokens", ""), *plain], depth),
        )
        + folded("α by place in the round", table([("place", ""), *plain], places))
        + folded(
            f"Articles ({len(articles)})",
            table([("article", ""), ("tokens", "of the summary"), *plain], articles),
        )
    )


def cost_table(lengths: Mapping[str, Mapping[str, Any]]) -> str:
    """A sweep in figures, with the posts' costs."""
    rows = [
        [
            n,
            shown(point["identical"], 4),
            shown(point["masked"], 4),
            signed(point["cost"]),
            bounds(point["ci95"], "+.4f"),
            *(signed(pair.cost.get(int(n))) for pair in PUBLISHED.values()),
        ]
        for n, point in lengths.items()
    ]
    heads = [("tokens", "of the suffix"), ("identical", ""), ("masked", ""), ("cost", ""),
             ("95 %", "over articles, Student's t")]  # fmt: skip
    heads += [(f"{name}, the posts", pair.models) for name, pair in PUBLISHED.items()]
    return table(heads, rows)


def skipped_list(skipped: Sequence[Any]) -> str:
    """The skipped articles and why; "" if there are none."""
    if not skipped:
        return ""
    lines = "".join(f"<li>{text(s.where)}: {text(s.why)}</li>" for s in skipped)
    return folded(f"Skipped ({len(skipped)})", f"<ul>{lines}</ul>")
