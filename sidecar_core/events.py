"""What happens in a run, as frozen dataclasses: the spine of the whole program.

The engine is a generator of these events. Everything that is shown, exported or replayed is a fold
over them (`report.py`), so an event holds plain Python values only and survives JSON unchanged.

Words: the *draft* proposes, the *target* judges. `seconds` is the time since the run began. `p` and
`q` are the target's and the draft's probability of the token as the acceptance rule compares them
(after temperature, top-k and top-p); at temperature 0, where the rule compares no probabilities,
they are the plain softmax. `overlap` is always Σ_v min(p(v), q(v)) of the plain softmax over the
common vocabulary, and `u` is the uniform draw that decided (None at temperature 0, and where none
was needed).
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, Literal

from sidecar_core.errors import SidecarError
from sidecar_core.schema import FieldError, build

Phase = Literal["prefill", "summary", "tagging", "done"]
Tagger = Literal["sidecar", "standalone"]
FinishReason = Literal["stop", "length", "cancelled"]
BlockEnd = Literal["gamma", "cost", "base", "limit", "end of text", "draft lost"]


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all events; the class name is the event's kind in JSON."""


@dataclass(frozen=True, slots=True)
class LoadProgress(Event):
    """Weights on their way: `done` of `total` in `unit` (both None where the length is unknown).
    The unit of bytes is "B"."""

    message: str
    done: int | None = None
    total: int | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class RunStarted(Event):
    """The first event of a run: what is about to happen, on what.

    `segments` lists (name, tokens) in prompt order for the draft; the target's prompt is the same
    without the suffix. `reused_tokens` counts the prompt tokens whose keys and values were already
    there (target, draft).
    """

    pair: str
    precision: str
    device: str
    settings: dict[str, Any]
    segments: tuple[tuple[str, int], ...]
    target_tokens: int
    draft_tokens: int
    suffix_tokens: int
    reused_tokens: tuple[int, int]
    note: str = ""


@dataclass(frozen=True, slots=True)
class PrefillProgress(Event):
    """`done` of `total` prompt tokens are in the cache of `model`."""

    model: Literal["target", "draft", "standalone"]
    done: int
    total: int
    seconds: float


@dataclass(frozen=True, slots=True)
class PhaseChanged(Event):
    phase: Phase
    seconds: float


@dataclass(frozen=True, slots=True)
class DraftLost(Event):
    """The draft failed, and why; from here on the target decodes alone, one token a round."""

    why: str
    seconds: float


@dataclass(frozen=True, slots=True)
class RoundStarted(Event):
    """The draft is about to propose at most `gamma` tokens (0: the target decodes one plainly)."""

    round: int
    gamma: int
    seconds: float


@dataclass(frozen=True, slots=True)
class TokenEvent(Event):
    """One token in one round; `place` is its index in the draft block, counted from 0.

    `text` is what the token adds to the text so far ("" while a character is incomplete).
    """

    round: int
    place: int
    id: int
    text: str
    p: float | None
    q: float | None
    overlap: float | None
    u: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class TokenDrafted(TokenEvent):
    """Proposed, not yet judged: p, overlap and u are None."""


@dataclass(frozen=True, slots=True)
class BlockEnded(Event):
    """The draft proposed `drafted` tokens, and why no more: γ is reached; one more would cost more
    than it brings; this round measures plain decoding (base); the summary's token limit leaves no
    room; an end of text was drafted; the draft failed. (Older recordings do not have it.)"""

    round: int
    drafted: int
    why: BlockEnd
    seconds: float


@dataclass(frozen=True, slots=True)
class PlainPass(Event):
    """A pass of the target over one row took `pass_seconds`: what plain decoding needs for a token.

    An `extra` pass was made to know that, and leaves nothing behind. (Older recordings have none.)
    """

    round: int
    pass_seconds: float
    extra: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Candidates(Event):
    """The likeliest tokens of both models at the place that is judged next, (text, p, q) each, by
    the plain softmax; p's likeliest come first. Their shared parts min(p, q) are the largest terms
    of the overlap. (Older recordings have none.)"""

    round: int
    place: int
    tokens: tuple[tuple[str, float, float], ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class TokenAccepted(TokenEvent):
    """Judged and kept: part of the summary."""


@dataclass(frozen=True, slots=True)
class TokenRejected(TokenEvent):
    """Judged and thrown away; drafted tokens behind it were never judged."""


@dataclass(frozen=True, slots=True)
class TokenCorrected(TokenEvent):
    """Takes the place of a rejected token: drawn from max(0, p - q), or the target's argmax.

    It repeats the overlap of the rejected token's position, which counts once.
    """


@dataclass(frozen=True, slots=True)
class TokenBonus(TokenEvent):
    """The target's own token behind a fully accepted block: q, overlap and u are None."""


@dataclass(frozen=True, slots=True)
class TagText(Event):
    """`text` is what this token adds to the tagger's raw output (the cue is not repeated)."""

    tagger: Tagger
    id: int
    text: str
    seconds: float
    task: str = "hashtags"


@dataclass(frozen=True, slots=True)
class TagsFinished(Event):
    """A tagger is done.

    `kv_tokens` and `kv_bytes` are the cache columns that its last token attended to and their size;
    `prefill_tokens` were computed for it before its first tag; `seconds` is its own time.
    `forced` is the cue as text: the output is the cue followed by `text`.
    """

    tagger: Tagger
    text: str
    tags: tuple[str, ...]
    forced: str
    kv_tokens: int
    kv_bytes: int
    prefill_tokens: int
    seconds: float
    task: str = "hashtags"


@dataclass(frozen=True, slots=True)
class TagsSkipped(Event):
    """A tagger does not run under these settings, and why."""

    tagger: Tagger
    why: str
    task: str = "hashtags"


@dataclass(frozen=True, slots=True)
class SummaryFinished(Event):
    """The summary is complete; `ids` ends with the end-of-text token if one was made."""

    text: str
    ids: tuple[int, ...]
    reason: FinishReason
    target_passes: int
    draft_passes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class RunFinished(Event):
    """The last event of a run. `timings` maps a stage to seconds.

    Stages: prefill_target, prefill_draft, draft_passes, target_passes, overlap, tagging, engine
    (everything between the models' passes while summarising), total.
    """

    reason: FinishReason
    timings: dict[str, float]
    seconds: float


@dataclass(frozen=True, slots=True)
class RunFailed(Event):
    """The run ended with an error that a user can read."""

    message: str
    seconds: float


EVENTS: dict[str, type[Event]] = {
    cls.__name__: cls
    for cls in (
        LoadProgress, RunStarted, PrefillProgress, PhaseChanged, DraftLost, RoundStarted,
        TokenDrafted, BlockEnded, Candidates, PlainPass, TokenAccepted, TokenRejected,
        TokenCorrected, TokenBonus, TagText, TagsFinished, TagsSkipped, SummaryFinished,
        RunFinished, RunFailed,
    )
}  # fmt: skip


def to_json(event: Event) -> str:
    """One line of JSON in ASCII: the event's fields behind its kind."""
    fields = {f.name: getattr(event, f.name) for f in dataclasses.fields(event)}
    return json.dumps({"event": type(event).__name__, **fields})


def from_json(line: str) -> Event:
    """The event that `to_json` wrote. Raises SidecarError for anything else."""
    try:
        return from_fields(json.loads(line))
    except (ValueError, RecursionError) as error:
        why = str(error)[:80] if isinstance(error, FieldError) else "it is no JSON object"
        raise SidecarError(
            f"This line is not an event of a run, {why}: {ascii(line[:80])[:80]}"
        ) from error


def from_fields(fields: Any) -> Event:
    """The event of a JSON object. Raises FieldError for one that is none."""
    kind = fields.get("event") if isinstance(fields, dict) else None
    if not isinstance(kind, str) or kind not in EVENTS:
        raise FieldError("it names no known event")
    return build(EVENTS[kind], {name: v for name, v in fields.items() if name != "event"})
