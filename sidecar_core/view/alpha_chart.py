"""α over the rounds, and the fate of each round's drafts, as a Plotly figure.

Figures suit a light and a dark page: no template, no background, grey letters. Values are Python
lists, the height is fixed, and a constant `uirevision` keeps the reader's zoom across redraws.
"""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from sidecar_core.report import RoundTally, alphas
from sidecar_core.view.render import text

Rounds = Sequence[RoundTally]

HEIGHT, TOP, BOTTOM, LEFT, RIGHT = 250, 8, 34, 44, 112
"""The figure's height and margins in pixels; the right margin holds the names of the lines."""

UPPER, GAP = 0.7, 0.06
"""Shares of the height: the upper chart, and the gap between the charts."""

LINE = 13
"""Pixels between two names."""

MAX_NAMES = 8
"""How many earlier runs get a name; every run gets a line."""

DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
"""Earlier runs differ by form, not by colour alone."""

GREY, BLUE, VERMILION, GREEN = "#8a8a86", "#0072B2", "#D55E00", "#009E73"
"""Okabe-Ito colours, as in the stream."""


def alpha_figure(
    current: Rounds, earlier: Sequence[tuple[str, Rounds]] = (), label: str = ""
) -> go.Figure:
    """The current run in full colour, earlier runs as thin labelled lines, its rounds below.

    `earlier` are (label, rounds), the latest last; `label` names the current run. Hovering over a
    round shows its counts.
    """
    figure = make_subplots(
        rows=2, shared_xaxes=True, row_heights=[UPPER, 1 - UPPER], vertical_spacing=GAP
    )
    for n, (_, rounds) in enumerate(earlier):
        _line(figure, rounds, color=GREY, width=1, dash=DASHES[n % len(DASHES)])
    _line(figure, current, color=BLUE, width=2.5)
    lines = [*earlier, (label, current)]
    low, high = _span([alpha for _, rounds in lines for _, alpha in alphas(rounds)])
    _names(figure, [(name, found[-1][1]) for name, r in lines if (found := alphas(r))], low, high)
    numbers = list(range(1, len(current) + 1))
    told = [text(_round_words(n, r)) for n, r in enumerate(current)]
    for name, counts, color, shape in (
        ("accepted", [r.accepted for r in current], BLUE, ""),
        ("rejected", [r.rejected for r in current], VERMILION, "/"),
        ("bonus", [r.bonus for r in current], GREEN, "."),
    ):
        pattern = {"shape": shape, "fillmode": "overlay", "fgcolor": "white", "size": 5}
        figure.add_bar(
            x=numbers,
            y=counts,
            name=name,
            marker={"color": color, "pattern": pattern},
            # One label a round, whichever bar is the tallest.
            hovertext=told if name == "accepted" else None,
            hoverinfo="text" if name == "accepted" else "skip",
            row=2,
            col=1,
        )
    figure.update_yaxes(title={"text": "drafts"}, showgrid=False, nticks=3, row=2, col=1)
    _layout(figure, [rounds for _, rounds in lines], low, high)
    figure.update_xaxes(title=None, row=1, col=1)
    return figure


def two_alphas(left: tuple[str, Rounds], right: tuple[str, Rounds]) -> go.Figure:
    """Two runs side by side: (label, rounds) each, the left solid, the right dashed."""
    figure = make_subplots(rows=1, cols=1)
    _line(figure, left[1], color=BLUE, width=2.5)
    _line(figure, right[1], color=VERMILION, width=2.5, dash="dash")
    low, high = _span([alpha for _, rounds in (left, right) for _, alpha in alphas(rounds)])
    drawn = [(run, color) for run, color in ((left, BLUE), (right, VERMILION)) if alphas(run[1])]
    ends = [(name, alphas(rounds)[-1][1]) for (name, rounds), _ in drawn]
    colors = [color for _, color in drawn]
    _names(figure, ends, low, high, colors)
    _layout(figure, [left[1], right[1]], low, high)
    return figure


def _layout(figure: go.Figure, runs: Sequence[Rounds], low: float, high: float) -> None:
    """Axes and looks; the upper chart shows α from `low` to `high`."""
    last = max([8, *map(len, runs)])
    axis = {"showgrid": False, "zeroline": False, "fixedrange": True}
    figure.update_xaxes(range=[0.4, last + 0.6], title={"text": "round", "standoff": 4}, **axis)
    figure.update_yaxes(zeroline=False, fixedrange=True)
    figure.update_yaxes(
        tickformat=".2f",
        nticks=5,
        range=[low, high],
        showgrid=True,
        gridcolor="rgba(138,138,134,0.25)",
        row=1,
        col=1,
    )
    figure.update_layout(
        template="none",
        height=HEIGHT,
        margin={"l": LEFT, "r": RIGHT, "t": TOP, "b": BOTTOM},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": GREY, "size": 11},
        barmode="stack",
        showlegend=False,
        hovermode="x",
        uirevision="alpha",
    )


def _span(values: Sequence[float]) -> tuple[float, float]:
    """The range of α to show; 0 to 1 if there are no values."""
    if not values:
        return 0.0, 1.0
    pad = max(0.01, 0.05 * (max(values) - min(values)))
    return min(values) - pad, max(values) + pad


def _line(
    figure: go.Figure, rounds: Rounds, *, color: str, width: float, dash: str = "solid"
) -> None:
    """α after each round."""
    points = alphas(rounds)
    figure.add_scatter(
        x=[n + 1 for n, _ in points],
        y=[alpha for _, alpha in points],
        mode="lines",
        line={"color": color, "width": width, "dash": dash},
        hovertext=[text(_round_words(n, rounds[n])) for n, _ in points],
        hoverinfo="text",
        row=1,
        col=1,
    )


def _names(
    figure: go.Figure,
    ends: Sequence[tuple[str, float]],
    low: float,
    high: float,
    colors: Sequence[str] = (BLUE,),
) -> None:
    """Each line's last value and name at its height, moved apart where they would overlap. The
    current run is the last one; `colors` are those of the last lines, the others are grey."""
    height = (HEIGHT - TOP - BOTTOM) * UPPER * (1 - GAP)
    chosen = [*ends[:-1][-MAX_NAMES:], *ends[-1:]]
    shades = [*[GREY] * len(chosen), *colors]
    own = [height * (alpha - low) / (high - low) for _, alpha in chosen]
    order = sorted(range(len(chosen)), key=lambda n: -own[n])
    places: dict[int, float] = {}
    roof = height
    for n in order:
        places[n] = min(own[n], roof)
        roof = places[n] - LINE
    floor = 0.0
    for n in reversed(order):
        places[n] = max(places[n], floor)
        floor = places[n] + LINE
    for n, (name, alpha) in enumerate(chosen):
        figure.add_annotation(
            xref="x domain",
            x=1,
            xanchor="left",
            yref="y",
            y=alpha,
            yshift=places[n] - own[n],
            text=f" {alpha:.3f} {text(name)}",
            showarrow=False,
            font={"color": shades[n - len(chosen)]},
        )


def _round_words(n: int, r: RoundTally) -> str:
    words = f"round {n + 1}: {r.accepted} of {r.judged} judged drafts accepted"
    if r.drafted > r.judged:
        words += f" ({r.drafted} drafted)"
    if r.bonus:
        words += ", one token from the target"
    return words + (f" · α {r.alpha:.3f}" if r.alpha is not None else "")
