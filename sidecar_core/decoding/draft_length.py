"""How many tokens to draft in a round: a fixed γ, or the one that pays best by what was measured.

Neither changes what is emitted at temperature 0, nor its distribution at any other: speculative
decoding is exact for every γ. (Which sample a seed gives does depend on γ.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np


@dataclass(frozen=True, slots=True)
class Round:
    """What one round took: tokens, and seconds of its passes."""

    drafted: int
    judged: int
    accepted: int
    draft_seconds: float
    target_seconds: float


class DraftLength(Protocol):
    """Chooses γ for the next round, knowing the rounds so far."""

    def choose(self) -> int: ...

    def observe(self, done: Round) -> None: ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always the same γ."""

    gamma: int

    def choose(self) -> int:
        return self.gamma

    def observe(self, done: Round) -> None:
        """Nothing to learn."""


def expected_tokens(acceptance: float, gamma: int) -> float:
    """Tokens per target pass when every draft is accepted with probability `acceptance` on its own.

    (1 - a^(γ+1)) / (1 - a), Leviathan et al. 2023, equation 1.
    """
    return float(sum(acceptance**place for place in range(gamma + 1)))


@dataclass(slots=True)
class Adaptive:
    """The γ with the most expected tokens per second.

    Acceptance comes from the last `WINDOW` rounds, with `PRIOR` (accepted, judged) so that one
    lucky round decides nothing; the cost of a draft pass is the mean, that of a target pass a
    straight line through (rows, seconds). The first rounds try γ = `first`, then half and half
    more, so that the line has points to go through.
    """

    first: int
    limit: int = 12
    rounds: list[Round] = field(default_factory=list)

    WINDOW = 12
    PRIOR = (2.0, 3.0)

    def choose(self) -> int:
        trials = (self.first, self.first // 2, self.first + self.first // 2)
        if len(self.rounds) < len(trials):
            return min(max(trials[len(self.rounds)], 1), self.limit)
        recent = self.rounds[-self.WINDOW :]
        accepted = self.PRIOR[0] + sum(r.accepted for r in recent)
        judged = self.PRIOR[1] + sum(r.judged for r in recent)
        draft = sum(r.draft_seconds for r in recent) / max(sum(r.drafted for r in recent), 1)
        rows = np.array([r.drafted + 1 for r in recent], dtype=float)
        seconds = np.array([r.target_seconds for r in recent])
        slope, base = (
            np.polyfit(rows, seconds, 1) if np.ptp(rows) > 0 else (0.0, float(seconds.mean()))
        )
        slope = max(float(slope), 0.0)
        base = max(float(base), float(seconds.min()) / 4)

        def tokens_per_second(gamma: int) -> float:
            cost = gamma * draft + base + slope * (gamma + 1)
            return expected_tokens(accepted / judged, gamma) / cost if cost > 0 else 0.0

        return max(range(1, self.limit + 1), key=tokens_per_second)

    def observe(self, done: Round) -> None:
        if done.drafted:
            self.rounds.append(done)
