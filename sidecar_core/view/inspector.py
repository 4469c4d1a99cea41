"""What the overlap inspector shows of a token, as attributes of its element: no own figures, only
what the events say. `assets/inspector.js` draws it, on the page and in an exported recording.

The shared part of two bars is min(p, q); summed over the whole vocabulary that is the overlap.
"""

from __future__ import annotations

import html
import json

from sidecar_core.events import (
    Candidates,
    TokenAccepted,
    TokenBonus,
    TokenCorrected,
    TokenEvent,
    TokenRejected,
)


def at_place(event: TokenEvent, candidates: Candidates | None) -> Candidates | None:
    """The candidates if they are those of the token's place. A corrected token shares the place of
    the rejected one; a bonus token has a place without a guess."""
    fits = candidates and (candidates.round, candidates.place) == (event.round, event.place)
    return candidates if fits else None


def reason(event: TokenEvent) -> str:
    """Why the token stands where it stands, in a sentence; "" for one that is not judged."""
    drawn = event.u is not None and event.p is not None and event.q
    rule = f"min(1, p ∕ q) = {min(1.0, event.p / event.q):.3f}" if drawn else ""  # type: ignore[operator]
    match event:
        case TokenAccepted():
            if drawn:
                return f"Accepted: u = {event.u:.3f} is at most {rule}."
            return "Accepted: it is the target’s likeliest token."
        case TokenRejected():
            if drawn:
                return f"Rejected: u = {event.u:.3f} is above {rule}."
            return "Rejected: it is not the target’s likeliest token."
        case TokenCorrected():
            return (
                "Corrected: takes the place of the rejected token, from what the draft left "
                "uncovered, max(0, p − q); at temperature 0, the target’s likeliest token."
            )
        case TokenBonus():
            return (
                "Bonus: every draft of this round was accepted, so the target adds a token of its "
                "own. The draft made no guess here."
            )
        case _:
            return ""


def attributes(event: TokenEvent, candidates: Candidates | None) -> str:
    """` data-…="…"` for the token's element: its place, the reason, the overlap, and the candidates
    as [text, p, q] each."""
    said = reason(event)
    if not said:
        return ""
    values = {"round": f"{event.round + 1}", "why": said}
    if event.overlap is not None:
        values["overlap"] = f"{event.overlap:.3f}"
    if candidates is not None:
        rows = [[words, float(f"{p:.3g}"), float(f"{q:.3g}")] for words, p, q in candidates.tokens]
        values["likeliest"] = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    return "".join(f' data-{name}="{html.escape(v)}"' for name, v in values.items())
