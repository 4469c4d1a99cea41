"""Events as HTML: the token stream, the tiles, the status line.

Pure functions of events. Everything that comes from a visitor or a model passes through `text` or
`attribute`; nothing else does. The stream only ever appends to `TokenStream.done`, so that an
update sends what is new and nothing on the page is built again. With the rejected tokens left out
its text is the summary, character for character.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field

from sidecar_core.events import (
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

KINDS: dict[type[TokenEvent], tuple[str, str, str]] = {
    TokenAccepted: ("span", "acc", "accepted"),
    TokenRejected: ("del", "rej", "rejected"),
    TokenCorrected: ("span", "cor", "corrected"),
    TokenBonus: ("span", "bon", "bonus"),
    TokenDrafted: ("span", "pen", "drafted, not judged yet"),
}
"""Event → (element, class, word for the tooltip)."""

END = "⟨end⟩"
"""Shows a proposed token without text: an end of turn."""


def text(value: str) -> str:
    """`value` as text between tags."""
    return html.escape(value, quote=False)


def attribute(value: str) -> str:
    """`value` inside a double-quoted attribute."""
    return html.escape(value, quote=True)


def token_tip(event: TokenEvent) -> str:
    """What a token's tooltip says: its fate, p, q, overlap, u and round (counted from 1)."""
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


def token(event: TokenEvent) -> str:
    """One token. Its leading white space stays outside the element, so that marks hug the word."""
    element, css, _ = KINDS[type(event)]
    tip = attribute(token_tip(event))
    shown = event.text
    if css in ("rej", "pen"):
        shown = shown.replace("\n", "⏎") or END
        css += " lead" if shown.startswith(" ") else ""
        shown = shown.strip(" ") or "␣"
    if not shown:
        return ""
    word = shown.lstrip(" ")
    space = shown[: len(shown) - len(word)] if word else ""
    css += "" if shown.strip() else " blank"
    return f'{space}<{element} class="t {css}" title="{tip}">{text(word or shown)}</{element}>'


@dataclass(slots=True)
class TokenStream:
    """Fold of a run's events into the stream: `done` only grows; `pending` is being judged."""

    done: str = ""
    pending: list[TokenDrafted] = field(default_factory=list)

    def add(self, event: Event) -> None:
        match event:
            case RoundStarted():
                self.pending.clear()
                if event.round:
                    self.done += f'<i class="round" title="round {event.round + 1}"></i>'
            case TokenDrafted():
                self.pending.append(event)
            case TokenAccepted() | TokenRejected() | TokenCorrected() | TokenBonus():
                self.pending.clear()
                self.done += token(event)
            case SummaryFinished():
                self.pending.clear()

    def value(self) -> dict[str, str]:
        """What the page's template shows."""
        return {"done": self.done, "pending": "".join(map(token, self.pending))}


def tile(name: str, value: str, note: str, explanation: str) -> str:
    return (
        f'<div class="tile" title="{attribute(explanation)}"><dt>{name}</dt>'
        f'<dd class="figure">{value}</dd><dd class="note">{text(note)}</dd></div>'
    )


def tiles(report: RunReport | None) -> str:
    """The four live figures; "–" before anything was judged."""
    r = report or RunReport()
    passes = r.target_passes if r.emitted else 0
    return "".join(
        (
            tile(
                "α",
                shown(r.alpha),
                f"over {r.judged} judged" if r.judged else "mean overlap",
                "How much of the draft's next-token distribution agrees with the target's: the sum "
                "of min(p, q) over the vocabulary, averaged over the judged positions.",
            ),
            tile(
                "Acceptance",
                "–" if r.acceptance_rate is None else f"{r.acceptance_rate:.0%}",
                f"{r.accepted} of {r.judged} drafts kept" if r.judged else "drafts kept",
                "Accepted drafted tokens divided by judged drafted tokens. Drafts behind the first "
                "rejection of a round are never judged.",
            ),
            tile(
                "Tokens per pass",
                shown(r.tokens_per_pass, 2),
                f"{r.emitted} tokens, {passes} passes" if r.emitted else "of the target",
                "Tokens of the summary for each forward pass of the target. Without a draft it "
                "would be 1.",
            ),
            tile(
                "Tokens per second",
                shown(r.tokens_per_second, 1),
                "prompt reading not counted",
                "Speed of the summary since its first round began.",
            ),
        )
    )


def status(message: str, kind: str = "idle", fraction: float | None = None) -> dict[str, str]:
    """The status line. `message` is read out by screen readers, so it changes with the stage only;
    the bar below it moves freely. `kind`: idle, busy, done or error."""
    percent = "" if fraction is None else f"{max(0.0, min(1.0, fraction)):.0%}"
    return {"message": text(message), "kind": kind, "percent": percent, "width": percent or "0%"}
