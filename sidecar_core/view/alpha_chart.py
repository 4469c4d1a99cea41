"""α over the rounds and what became of each round's drafts, as a Plotly figure.

Figures are bare so that they sit in a light and in a dark page: no template, no background, grey
letters. Values are Python lists, the height is fixed, and a constant `uirevision` keeps the
reader's zoom when a figure is redrawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from sidecar_core.events import (
    Event,
    RoundStarted,
    TokenAccepted,
    TokenBonus,
    TokenDrafted,
    TokenRejected,
)
from sidecar_core.view.render import text


@dataclass(slots=True)
class RoundTally:
    """What one round came to; `alpha` is the mean overlap over the run so far, after it."""

    drafted: int = 0
    accepted: int = 0
    rejected: int = 0
    bonus: int = 0
    alpha: float | None = None

    @property
    def judged(self) -> int:
        return self.accepted + self.rejected


@dataclass(slots=True)
class Series:
    """Fold of a run's events into its rounds."""

    rounds: list[RoundTally] = field(default_factory=list)
    _overlaps: list[float] = field(default_factory=list)

    def add(self, event: Event) -> None:
        match event:
            case RoundStarted():
                self.rounds.append(RoundTally())
            case TokenDrafted():
                self.rounds[-1].drafted += 1
            case TokenAccepted() | TokenRejected():
                now = self.rounds[-1]
                now.accepted += isinstance(event, TokenAccepted)
                now.rejected += isinstance(event, TokenRejected)
                if event.overlap is not None:
                    self._overlaps.append(event.overlap)
                    now.alpha = sum(self._overlaps) / len(self._overlaps)
            case TokenBonus():
                self.rounds[-1].bonus += 1

    def alphas(self) -> list[tuple[int, float]]:
        """(round, α so far) for the rounds in which something was judged."""
        return [(n, r.alpha) for n, r in enumerate(self.rounds) if r.alpha is not None]


HEIGHT, TOP, BOTTOM, LEFT, RIGHT = 250, 8, 34, 44, 112
"""Of the figure and its margins, in pixels; the right one holds the lines' names."""

UPPER, GAP = 0.7, 0.06
"""Shares of the upper chart and of the gap between both."""

LINE = 13
"""Pixels from one name to the next."""

MAX_NAMES = 8
"""Earlier runs that are named; the lines of all are drawn."""

GREY, BLUE, VERMILION, GREEN = "#8a8a86", "#0072B2", "#D55E00", "#009E73"
"""Okabe-Ito colours, as in the stream."""


def alpha_figure(
    current: Series, ghosts: Sequence[tuple[str, Series]] = (), label: str = ""
) -> go.Figure:
    """The run under way in full colour, earlier runs as thin labelled lines, rounds below it.

    `ghosts` are (label, series), the latest last; `label` names the current run. Hovering tells
    what a round came to.
    """
    figure = make_subplots(
        rows=2, shared_xaxes=True, row_heights=[UPPER, 1 - UPPER], vertical_spacing=GAP
    )
    for _, series in ghosts:
        _line(figure, series, color=GREY, width=1)
    _line(figure, current, color=BLUE, width=2.5)
    lines = [*ghosts, (label, current)]
    low, high = _span([alpha for _, series in lines for _, alpha in series.alphas()])
    _names(figure, [(name, s.alphas()[-1][1]) for name, s in lines if s.alphas()], low, high)
    rounds = list(range(1, len(current.rounds) + 1))
    for name, counts, color, shape in (
        ("accepted", [r.accepted for r in current.rounds], BLUE, ""),
        ("rejected", [r.rejected for r in current.rounds], VERMILION, "/"),
        ("bonus", [r.bonus for r in current.rounds], GREEN, "."),
    ):
        pattern = {"shape": shape, "fillmode": "overlay", "fgcolor": "white", "size": 5}
        figure.add_bar(
            x=rounds,
            y=counts,
            name=name,
            marker={"color": color, "pattern": pattern},
            hoverinfo="skip",
            row=2,
            col=1,
        )
    last = max([8, len(current.rounds), *(len(series.rounds) for _, series in ghosts)])
    axis = {"showgrid": False, "zeroline": False, "fixedrange": True}
    figure.update_xaxes(range=[0.4, last + 0.6], **axis)
    figure.update_xaxes(title={"text": "round", "standoff": 4}, row=2, col=1)
    figure.update_yaxes(**axis | {"showgrid": True, "gridcolor": "rgba(138,138,134,0.25)"})
    figure.update_yaxes(tickformat=".2f", nticks=5, row=1, col=1)
    figure.update_yaxes(range=[low, high], row=1, col=1)
    figure.update_yaxes(title={"text": "drafts"}, showgrid=False, nticks=3, row=2, col=1)
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
    return figure


def _span(values: Sequence[float]) -> tuple[float, float]:
    """The range of α to show; from 0 to 1 before there is any."""
    if not values:
        return 0.0, 1.0
    pad = max(0.01, 0.05 * (max(values) - min(values)))
    return min(values) - pad, max(values) + pad


def _line(figure: go.Figure, series: Series, *, color: str, width: float) -> None:
    """α after each round."""
    points = series.alphas()
    figure.add_scatter(
        x=[n + 1 for n, _ in points],
        y=[alpha for _, alpha in points],
        mode="lines",
        line={"color": color, "width": width},
        hovertext=[text(_round_words(n, series.rounds[n])) for n, _ in points],
        hoverinfo="text",
        row=1,
        col=1,
    )


def _names(figure: go.Figure, ends: Sequence[tuple[str, float]], low: float, high: float) -> None:
    """Each line's last value and name at its height, moved apart where they would overlap; the
    last one is the current run's."""
    height = (HEIGHT - TOP - BOTTOM) * UPPER * (1 - GAP)
    chosen = [*ends[:-1][-MAX_NAMES:], *ends[-1:]]
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
            font={"color": BLUE if n == len(chosen) - 1 else GREY},
        )


def _round_words(n: int, r: RoundTally) -> str:
    words = f"round {n + 1}: {r.accepted} of {r.judged} judged drafts accepted"
    if r.drafted > r.judged:
        words += f" ({r.drafted} drafted)"
    if r.bonus:
        words += ", one token from the target"
    return words + (f" · α {r.alpha:.3f}" if r.alpha is not None else "")
