"""How many tokens to draft in a round: a fixed γ, or as many as pay.

Neither changes what is emitted at temperature 0, nor its distribution at any other. Whether one
more token is drafted may depend on what was drawn so far, in this block and before; a drawn token
always stays in its block. (Leaving one out because its q is low would bias the text: the tokens
that remain would no longer be drawn from q.)

Nothing here reads a clock, so the same seed makes the same blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sidecar_core.events import BlockEnd
from sidecar_core.models.kernels.calibration import Calibration

MOST = 8
"""Most tokens of a block whose length is chosen."""

RISES = (0.03, 0.25, 0.25, 0.25, 0.45, 0.6, 0.65, 0.8, 0.87, 0.98)
"""How often a drafted token was accepted by its q, in tenths of q: 513 tokens of the example
articles, Coder pair, int8, temperature 0."""

WEIGHT = 8.0
"""Tokens that this is worth against what the run itself shows, for each tenth."""

TRIAL = 16
"""Rounds without a draft until one token is drafted all the same, to see whether it pays by now."""

BASE_ROUNDS = (1, 2, 33, 34, 129, 130)
"""Rounds that tell how long plain decoding takes for a token. (Round 0 also reads the prompt's
tail.)"""


class DraftLength(Protocol):
    """Decides whether to draft one more token, knowing the rounds so far."""

    def extra_base(self, round_: int) -> bool:
        """Whether this round needs an extra pass to measure plain decoding."""
        ...

    def most(self, room: int) -> int:
        """Most tokens that a block may get if `room` are left."""
        ...

    def end(self, q: Sequence[float]) -> BlockEnd | None:
        """Why a block of tokens that were drafted with these probabilities ends, or None if one
        more is to be drafted."""
        ...

    def observe(self, q: Sequence[float], judged: int, accepted: int) -> None:
        """What became of a block: the first `judged` of its tokens were judged."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always the same γ.

    >>> Fixed(2).end([0.9]), Fixed(2).end([0.9, 0.1])
    (None, 'gamma')
    """

    gamma: int

    def extra_base(self, round_: int) -> bool:
        return self.gamma > 0 and round_ in BASE_ROUNDS

    def most(self, room: int) -> int:
        return min(self.gamma, room)

    def end(self, q: Sequence[float]) -> BlockEnd | None:
        return "gamma" if len(q) >= self.gamma else None

    def observe(self, q: Sequence[float], judged: int, accepted: int) -> None:
        """Nothing to learn."""


@dataclass(slots=True)
class Auto:
    """One token more as long as it brings more than it costs.

    It brings a token if all before it in the block are accepted and it is too: the product of their
    chances, which are known by their q, times the chance of a token whose q is not known yet. It
    costs a draft pass, and one row more in the target's pass. The price of a second is the tokens
    that the run brought per second so far, so that drafting stops where the time is better spent on
    the next round (the rule that maximises a ratio of sums, Dinkelbach 1967).

    Seconds are those of the calibration, for every round: what the round would take on an idle
    machine. Chances begin as `RISES` and follow the run. In `BASE_ROUNDS` nothing is drafted.
    """

    target: Calibration
    draft: Calibration
    rises: list[tuple[float, float]] = field(
        default_factory=lambda: [(WEIGHT * chance, WEIGHT) for chance in RISES]
    )
    tokens: float = 0.0
    seconds: float = 0.0
    judged: float = 8.0
    accepted: float = 5.6
    alone: int = 0
    rounds: int = 0

    def extra_base(self, round_: int) -> bool:
        return False

    def most(self, room: int) -> int:
        return min(MOST, room)

    def end(self, q: Sequence[float]) -> BlockEnd | None:
        if len(q) >= MOST:
            return "gamma"
        if not q and self.rounds in BASE_ROUNDS:
            return "base"
        if not q and self.alone >= TRIAL:
            return None
        reach = 1.0
        for probability in q:
            reach *= self._chance(probability)
        brings = reach * self.accepted / self.judged
        rows = len(q) + 1
        costs = self.draft.pass_seconds(1)
        costs += self.target.pass_seconds(rows + 1) - self.target.pass_seconds(rows)
        return None if brings > costs * self._tokens_per_second() else "cost"

    def observe(self, q: Sequence[float], judged: int, accepted: int) -> None:
        self.alone = 0 if q else self.alone + 1
        self.rounds += 1
        self.tokens += accepted + 1
        self.seconds += self.target.pass_seconds(len(q) + 1) + len(q) * self.draft.pass_seconds(1)
        self.judged += judged
        self.accepted += accepted
        for place, probability in enumerate(q[:judged]):
            accepted_before, judged_before = self.rises[_tenth(probability)]
            self.rises[_tenth(probability)] = (
                accepted_before + (place < accepted),
                judged_before + 1,
            )

    def _chance(self, q: float) -> float:
        accepted, judged = self.rises[_tenth(q)]
        return accepted / judged

    def _tokens_per_second(self) -> float:
        """So far, with a few rounds of plain decoding before the first one."""
        plain = self.target.pass_seconds(1)
        return (4 + self.tokens) / (4 * plain + self.seconds)


def _tenth(q: float) -> int:
    return min(int(q * 10), 9)


def expected_tokens(acceptance: float, gamma: int) -> float:
    """Tokens per target pass when every draft is accepted with probability `acceptance` on its own.

    (1 - a^(γ+1)) / (1 - a), Leviathan et al. 2023, equation 1.

    >>> expected_tokens(0.5, 2)
    1.75
    """
    return float(sum(acceptance**place for place in range(gamma + 1)))
