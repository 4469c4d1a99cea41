"""α over the rounds and what became of each round's drafts, as HTML with a little SVG in it.

Lines stretch with the page (`preserveAspectRatio="none"`, strokes that do not scale) while all text
is HTML, so that a chart is sharp on a phone and on a projector, follows the light or dark theme by
CSS alone, and changes without a flash. Positions are percentages of the plot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from sidecar_core.events import (
    Event,
    RoundStarted,
    TokenAccepted,
    TokenBonus,
    TokenCorrected,
    TokenDrafted,
    TokenRejected,
)
from sidecar_core.ui.render import attribute, text


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
            case TokenCorrected():
                pass

    def alphas(self) -> list[tuple[int, float]]:
        """(round, α so far) for the rounds in which something was judged."""
        return [(n, r.alpha) for n, r in enumerate(self.rounds) if r.alpha is not None]


def alpha_chart(current: Series, ghosts: Sequence[tuple[str, Series]] = (), label: str = "") -> str:
    """The run under way in full colour, earlier runs as thin labelled lines, rounds below it.

    `ghosts` are (label, series), the latest last; `label` names the current run.
    """
    lines = [(name, s.alphas()) for name, s in ghosts]
    now = current.alphas()
    drawn = [points for _, points in lines if points] + ([now] if now else [])
    low, high = _domain(drawn)
    count = max([len(current.rounds), *(len(s.rounds) for _, s in ghosts), 8])

    def x(n: float) -> float:
        return 100 * (n + 0.5) / count

    def y(value: float) -> float:
        return 100 * (value - low) / (high - low)

    def path(points: Sequence[tuple[int, float]]) -> str:
        return " ".join(f"{x(n):.2f},{100 - y(v):.2f}" for n, v in points)

    grid = (
        ""
        if not drawn
        else "".join(
            f'<div class="grid" style="bottom:{y(v):.1f}%"><span>{v:.2f}</span></div>'
            for v in _ticks(low, high)
        )
    )
    svg = "".join(f'<polyline class="ghost" points="{path(p)}"/>' for _, p in lines if p)
    if now:
        svg += f'<polyline class="now" points="{path(now)}"/>'
    ends = [
        (y(points[-1][1]), f"{points[-1][1]:.3f} {name}", "ghost")
        for name, points in lines
        if points
    ]
    if now:
        ends.append((y(now[-1][1]), f"{now[-1][1]:.3f} {label}", "now"))
    labels = "".join(
        f'<span class="end {css}" style="bottom:{at:.1f}%">{text(words)}</span>'
        for at, words, css in _apart(ends)
    )
    dot = (
        f'<i class="dot" style="left:{x(now[-1][0]):.2f}%;bottom:{y(now[-1][1]):.2f}%"></i>'
        if now
        else ""
    )
    empty = "" if drawn else '<p class="quiet empty">α appears with the first judged draft.</p>'
    bare = "" if drawn else " bare"
    return (
        f'<div class="chart{bare}" role="img" aria-label="{attribute(_spoken(now, lines))}">'
        f'<div class="plot">{grid}<svg viewBox="0 0 100 100" preserveAspectRatio="none" '
        f'aria-hidden="true">{svg}</svg>{dot}{_hits(current, count)}{empty}</div>'
        f'<div class="ends" aria-hidden="true">{labels}</div>'
        f'<div class="rounds" style="--cells:{_cells(current)}">{_bars(current, count)}</div>'
        f'<p class="beside" aria-hidden="true">drafts of each round</p>'
        f'<div class="axis"><span>round 1</span><span>{count}</span></div></div>'
    )


def _domain(drawn: Sequence[Sequence[tuple[int, float]]]) -> tuple[float, float]:
    """Where the lines settle, with room; the first fifth of each is noise and may leave it."""
    values = [v for points in drawn for _, v in points[len(points) // 5 :]]
    if not values:
        return 0.0, 1.0
    low = math.floor((min(values) - 0.03) * 20) / 20
    high = math.ceil((max(values) + 0.03) * 20) / 20
    return max(0.0, low), min(1.0, high)


def _ticks(low: float, high: float) -> list[float]:
    step = next(s for s in (0.05, 0.1, 0.25, 0.5) if (high - low) / s <= 4.01)
    first = math.ceil(low / step - 1e-9)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def _apart(ends: list[tuple[float, str, str]], gap: float = 13.0) -> list[tuple[float, str, str]]:
    """The labels moved apart to `gap` percent, in order of height; of more than five ghosts, the
    latest stay."""
    kept = sorted(ends[-6:])
    total = gap * (len(kept) - 1)
    low = 0.0
    placed: list[tuple[float, str, str]] = []
    for n, (at, words, css) in enumerate(kept):
        room = gap * (len(kept) - 1 - n)
        at = max(low, min(at, max(100.0, total) - room))
        placed.append((at, words, css))
        low = at + gap
    return placed


def _hits(series: Series, count: int) -> str:
    """Invisible columns that say in a tooltip what each round came to."""
    return "".join(
        f'<i class="hit" style="left:{100 * n / count:.2f}%;width:{100 / count:.2f}%" '
        f'title="{attribute(_round_words(n, r))}"></i>'
        for n, r in enumerate(series.rounds)
    )


def _bars(series: Series, count: int) -> str:
    """A stack for each round: a block for an accepted draft, a cross for the rejected one."""
    columns = []
    for n, r in enumerate(series.rounds):
        cells = '<b class="acc"></b>' * r.accepted + '<b class="rej"></b>' * r.rejected
        cells += '<b class="bon"></b>' * r.bonus
        columns.append(f'<i title="{attribute(_round_words(n, r))}">{cells}</i>')
    columns += ["<i></i>"] * (count - len(columns))
    return "".join(columns)


def _cells(series: Series) -> int:
    """How many blocks the highest stack may have: the bars keep their height while it grows."""
    return max([5, *(max(r.drafted, r.judged) + 1 for r in series.rounds)])


def _round_words(n: int, r: RoundTally) -> str:
    words = f"round {n + 1}: {r.accepted} of {r.judged} judged drafts accepted"
    if r.drafted > r.judged:
        words += f" ({r.drafted} drafted)"
    if r.bonus:
        words += ", one token from the target"
    return words + (f" · α {r.alpha:.3f}" if r.alpha is not None else "")


def _spoken(
    now: Sequence[tuple[int, float]], ghosts: Sequence[tuple[str, Sequence[tuple[int, float]]]]
) -> str:
    parts = [f"alpha is {now[-1][1]:.3f} after {now[-1][0] + 1} rounds"] if now else []
    parts += [f"earlier run {name}: {p[-1][1]:.3f}" for name, p in ghosts if p]
    return "; ".join(parts) or "Chart of alpha over the rounds; nothing was judged yet"
