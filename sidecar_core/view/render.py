"""Events as HTML: the token stream, the tiles, the status line.

Pure functions of events. Everything that comes from a visitor or a model passes through `text` or
`attribute`; nothing else does. `StreamHtml.done` is append-only, so that an update sends only what
is new and the page rebuilds nothing. Without the rejected tokens its text is the summary, character
for character.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field

from sidecar_core.events import (
    Candidates,
    Event,
    RoundStarted,
    SummaryFinished,
    TokenAccepted,
    TokenBonus,
    TokenCorrected,
    TokenDrafted,
    TokenEvent,
    TokenRejected,
)
from sidecar_core.report import RunReport, shown
from sidecar_core.view.inspector import at_place, attributes

KINDS: dict[type[TokenEvent], tuple[str, str, str]] = {
    TokenAccepted: ("span", "acc", "accepted"),
    TokenRejected: ("del", "rej", "rejected"),
    TokenCorrected: ("span", "cor", "corrected"),
    TokenBonus: ("span", "bon", "bonus"),
    TokenDrafted: ("span", "pen", "drafted, not judged yet"),
}
"""Event → (element, class, word for the tooltip)."""

END = "⟨end⟩"
"""Stands for a proposed token without text, such as the end of the turn."""


def text(value: str) -> str:
    """`value` as text between tags."""
    return html.escape(value, quote=False)


def attribute(value: str) -> str:
    """`value` inside a double-quoted attribute."""
    return html.escape(value, quote=True)


def token_tip(event: TokenEvent) -> str:
    """A token's tooltip: its fate, p, q, overlap, u and round (counted from 1)."""
    parts = [KINDS[type(event)][2]]
    parts += [
        f"{name} {value:.3f}"
        for name, value in (("p", event.p), ("q", event.q), ("overlap", event.overlap))
        if value is not None
    ]
    if event.u is not None:
        parts.append(f"u {event.u:.3f}")
    parts.append(f"round {event.round + 1}")
    return " · ".join(parts)


def pending_text(event: TokenEvent) -> str:
    """The text of a token that is not part of the summary, on one line."""
    return event.text.replace("\n", "⏎") or END


def token(event: TokenEvent, candidates: Candidates | None = None) -> str:
    """One token, with the candidates of its place. Leading white space stays outside the element,
    so that marks touch the word."""
    element, css, _ = KINDS[type(event)]
    tip = f' title="{attribute(token_tip(event))}"' if css != "pen" else ""
    shown = event.text
    if css in ("rej", "pen"):
        shown = pending_text(event)
        css += " lead" if shown.startswith(" ") else ""
        shown = shown.strip(" ") or "␣"
    if not shown:
        return ""
    word = shown.lstrip(" ")
    space = shown[: len(shown) - len(word)] if word else ""
    css += "" if shown.strip() else " blank"
    marks = f'class="t {css}"{tip}{attributes(event, candidates)}'
    return f"{space}<{element} {marks}>{text(word or shown)}</{element}>"


@dataclass(slots=True)
class StreamHtml:
    """Fold of a run's events into the stream: `done` only grows; `pending` is not judged yet."""

    done: str = ""
    pending: list[TokenDrafted] = field(default_factory=list)
    candidates: Candidates | None = None

    def add(self, event: Event) -> None:
        match event:
            case RoundStarted():
                self.pending.clear()
                if event.round:
                    self.done += f'<i class="round" title="round {event.round + 1}"></i>'
            case TokenDrafted():
                self.pending.append(event)
            case Candidates():
                self.candidates = event
            case TokenAccepted() | TokenRejected() | TokenCorrected() | TokenBonus():
                self.pending.clear()
                self.done += token(event, at_place(event, self.candidates))
            case SummaryFinished():
                self.pending.clear()

    def value(self) -> dict[str, str]:
        """Values for the page's template."""
        return {"done": self.done, "pending": "".join(map(token, self.pending))}


def tiles(report: RunReport | None) -> dict[str, str]:
    """The four figures and their notes, for the page's template. Until something was judged a
    figure is "–", and its note says what will stand there, or why nothing will."""
    r = report or RunReport()
    rate = r.acceptance_rate
    kept = "how many drafts the target keeps"
    undrafted = "nothing was drafted" if r.emitted else ""
    return {
        "alpha": shown(r.alpha),
        "alpha_note": f"over {r.judged} judged drafts"
        if r.judged
        else undrafted or "how far draft and target agree",
        "rate": "–" if rate is None else f"{rate:.0%}",
        "rate_note": f"{r.accepted} of {r.judged} judged drafts" if r.judged else undrafted or kept,
        "passes": shown(r.tokens_per_pass, 2),
        "passes_note": f"{r.emitted} tokens, {r.target_passes} passes"
        if r.emitted
        else "plain decoding gives 1",
        "speed": shown(r.speedup, 2),
        "speed_note": f"{shown(r.tokens_per_second, 1)} tokens/s"
        if r.emitted
        else "how many times as fast as the target alone",
    }


def status(message: str, kind: str = "idle", fraction: float | None = None) -> dict[str, str]:
    """The status line. Screen readers read `message` aloud, so it changes with the stage only; the
    bar below it moves freely. `kind` is idle, busy, done or error."""
    percent = "" if fraction is None else f"{max(0.0, min(1.0, fraction)):.0%}"
    return {"message": text(message), "kind": kind, "percent": percent}
