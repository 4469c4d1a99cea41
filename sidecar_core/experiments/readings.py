"""What is measured of an article, as values: no model is needed to hold, keep or pool them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MAX_TOKENS = 200
"""Longest summary in tokens; the posts' figure."""


@dataclass(frozen=True, slots=True)
class Step:
    """Progress inside one article: `done` of `total` tokens of `stage`.

    While conditions are read, `condition` names the one that just was, and `alpha` is its mean
    overlap so far.
    """

    document: str
    stage: str
    done: int
    total: int
    condition: str = ""
    alpha: float | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """One condition on one summary, position by position.

    `overlaps` are Σ min(p, q) over the common vocabulary; `agreed` says whether the draft's most
    likely token is the summary's, which is what decides at temperature 0.
    """

    overlaps: tuple[float, ...]
    agreed: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Live:
    """What the live run at temperature 0 that wrote the summary came to (γ drafts a round).

    `overlap` is the sum over the judged positions.
    """

    gamma: int
    emitted: int
    passes: int
    judged: int
    accepted: int
    overlap: float


@dataclass(frozen=True, slots=True)
class DocumentAlpha:
    """One article measured. `summary_ids` end with the end of text, which is a position too."""

    id: str
    prompt_tokens: int
    summary_ids: tuple[int, ...]
    reason: str
    live: Live
    readings: Mapping[str, Reading]

    @property
    def positions(self) -> int:
        return len(self.summary_ids)
