"""Can this judge judge? Comparisons whose right answer is known, put to it before it is believed.

Each summary has a list that fits it. Against it stand: the same list with a name that the summary
does not hold, the list of another summary, an empty list, and the same list with one tag said three
times. The good list takes the sidecar's part in half of the cases and the standalone's in the
other half, so a judge that prefers one part gets half of them right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sidecar_core.experiments.judge.judge import Judge, Outcome, compare, preference
from sidecar_core.experiments.stats import sign_test
from sidecar_core.report import ratio

SUMMARIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "- The harbour council closes the old fish market.\n"
        "- A flood wall is built in its place by 2029.\n"
        "- Traders move to a hall near the railway station.",
        ("flood-wall", "fish-market", "harbour", "traders"),
    ),
    (
        "- A bakery recalls rye bread after metal was found in two loaves.\n"
        "- Nobody was hurt.\n- Shops refund the price without a receipt.",
        ("bread-recall", "food-safety", "bakery", "refund"),
    ),
    (
        "- Astronomers find a planet with two suns.\n- It circles them in 41 days.\n"
        "- A new telescope will look for water in its air.",
        ("exoplanet", "astronomy", "telescope", "two-suns"),
    ),
    (
        "- The night tram returns after nine years.\n- It runs every half hour until dawn.\n"
        "- Nurses and cooks had asked for it.",
        ("night-tram", "public-transport", "night-workers"),
    ),
    (
        "- The women's team wins the cup on penalties.\n- The goalkeeper stops three of them.\n"
        "- It is the club's first title.",
        ("cup-final", "football", "penalties", "goalkeeper"),
    ),
    (
        "- A drought empties the reservoir to a fifth.\n- Gardens may not be watered in August.\n"
        "- Farmers fear for the maize.",
        ("drought", "reservoir", "water-ban", "farmers"),
    ),
)
"""Summaries of invented events, each with a list that fits."""

INVENTED = ("lisbon", "pope-francis", "bitcoin", "hurricane", "oscars", "volcano")


@dataclass(frozen=True, slots=True)
class Planted:
    """One question; `good` is to win, or to tie where both lists are equal."""

    kind: str
    summary: str
    good: tuple[str, ...]
    bad: tuple[str, ...]


def planted() -> Iterator[Planted]:
    """Every summary with every kind of worse list."""
    others = (*SUMMARIES[1:], SUMMARIES[0])
    for (summary, good), (_, other), name in zip(SUMMARIES, others, INVENTED, strict=True):
        yield Planted("invented name", summary, good, (*good[:-1], name))
        yield Planted("another summary's", summary, good, other)
        yield Planted("empty", summary, good, ())
        yield Planted("repeats", summary, good, (good[0], *good[:2], good[0]))


def ask(judge: Judge) -> dict[str, Any]:
    """{kind: {cases, strict, corrected}} with how many came out right by each rule, and the same
    for `all`, with the p of so many if the judge guessed (ties count as wrong)."""
    right: dict[str, list[tuple[bool, bool]]] = {}
    for number, case in enumerate(planted()):
        lists: list[Sequence[str]] = [case.good, case.bad]
        wanted: Outcome = "sidecar"
        if number % 2:
            lists.reverse()
            wanted = "standalone"
        strict, verdicts = compare(judge, case.summary, lists[0], lists[1])
        corrected = preference(verdicts)
        found = (strict == wanted, corrected is not None and corrected.outcome == wanted)
        right.setdefault(case.kind, []).append(found)
    everything = [found for kind in right.values() for found in kind]
    return {kind: _counted(found) for kind, found in (right | {"all": everything}).items()}


def _counted(found: Sequence[tuple[bool, bool]]) -> dict[str, Any]:
    strict, corrected = (sum(column) for column in zip(*found, strict=True))
    return {
        "cases": len(found),
        "strict": strict,
        "corrected": corrected,
        "strict_share": ratio(strict, len(found)),
        "corrected_share": ratio(corrected, len(found)),
        "p_value": sign_test(corrected, len(found) - corrected),
    }
