"""Draft blocks at temperature 0, replayed from a reading.

Greedy acceptance needs no luck: a draft is kept where the draft's most likely token is the
summary's. So the rounds that a live run would have gone through follow from `Reading.agreed`, for
any γ and for every condition, without running it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sidecar_core.experiments.readings import Reading
from sidecar_core.report import ratio


@dataclass(slots=True)
class Place:
    """What became of the drafts at one place of the block; `overlap` is the sum over the judged."""

    judged: int = 0
    accepted: int = 0
    overlap: float = 0.0


@dataclass(slots=True)
class Blocks:
    """Rounds added up, over any number of summaries."""

    gamma: int
    passes: int = 0
    emitted: int = 0
    places: list[Place] = field(init=False)

    def __post_init__(self) -> None:
        self.places = [Place() for _ in range(self.gamma)]

    def add(self, reading: Reading, max_tokens: int) -> None:
        """Replay one summary as `speculative.speculate` would decode it."""
        at, count = 0, len(reading.agreed)
        while at < count:
            self.passes += 1
            for place in self.places[: max_tokens - at - 1]:
                place.judged += 1
                place.overlap += reading.overlaps[at]
                agreed = reading.agreed[at]
                place.accepted += agreed
                at += 1
                if not agreed or at == count:  # corrected, or the end of text accepted
                    break
            else:
                at += 1  # the target's own token behind a fully accepted block
        self.emitted += count

    @property
    def judged(self) -> int:
        return sum(place.judged for place in self.places)

    @property
    def accepted(self) -> int:
        return sum(place.accepted for place in self.places)

    @property
    def tokens_per_pass(self) -> float | None:
        return ratio(self.emitted, self.passes)

    @property
    def acceptance_rate(self) -> float | None:
        """accepted / judged."""
        return ratio(self.accepted, self.judged)

    @property
    def alpha(self) -> float | None:
        """Mean overlap over the judged positions, as a live run counts it."""
        return ratio(sum(place.overlap for place in self.places), self.judged)

    def as_list(self) -> list[dict[str, object]]:
        """One entry for each place, counted from 1."""
        return [
            {
                "place": number,
                "judged": place.judged,
                "acceptance_rate": ratio(place.accepted, place.judged),
                "alpha": ratio(place.overlap, place.judged),
            }
            for number, place in enumerate(self.places, 1)
        ]


def replayed(readings: Iterable[Reading], gamma: int, max_tokens: int) -> Blocks:
    """All `readings` replayed with γ drafts a round."""
    blocks = Blocks(gamma)
    for reading in readings:
        blocks.add(reading, max_tokens)
    return blocks
