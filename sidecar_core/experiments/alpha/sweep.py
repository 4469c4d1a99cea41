"""Position cost against the length of the suffix.

A masked suffix is never read by the draft while it drafts the summary: all it does is to keep n
positions free in front of the chat tail, whatever it says. A visible one is read, so its words
matter: it grows by sensible advice on the task, not by noise (`lengthened`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

from sidecar_core.errors import SidecarError
from sidecar_core.experiments.alpha.conditions import Condition
from sidecar_core.experiments.alpha.pooling import BASELINE, Table
from sidecar_core.experiments.readings import DocumentAlpha
from sidecar_core.prompts import PromptBuilder

LENGTHS = (25, 50, 100, 200, 400)
MAX_LENGTH = 2_000

ADVICE = (
    "Write the hashtags in lower case, with hyphens between words.",
    "Put the most important one first.",
    "Use words that a reader would type into a search box.",
    "Name people, places and organisations only if the summary names them.",
    "Do not use a name that stands in the document but not in the summary.",
    "Leave out the names of newspapers and news agencies.",
    "Prefer the subject of the story to the form in which it is told.",
    "Do not repeat a hashtag, and do not give two that mean the same.",
    "Avoid hashtags that would fit any story, such as news, today or breaking.",
    "Avoid opinions, exclamations and jokes.",
    "Use the singular unless only the plural is common.",
    "Spell out abbreviations unless everybody knows them.",
    "Leave out dates, amounts of money and other figures.",
    "If the story is about science, name the field and the finding.",
    "If the story is about politics, name the country and the question at issue.",
    "If the story is about business, name the company and what it did.",
    "If the story is about sport, name the sport and the competition.",
    "If the story is about a crime, do not name suspects who have not been convicted.",
    "If the story is about health, name the illness or the product, and the risk.",
    "Do not give more than three words to one hashtag.",
    "Use English, whatever the language of a quotation in the story may be.",
    "Do not translate proper names.",
    "Give no explanation, no introduction and no closing remark.",
    "Begin with an opening bracket and end with a closing one.",
    "Put every hashtag into double quotation marks and separate them by commas.",
    "Check at the end that each of them is supported by a sentence of the summary.",
)
"""Further instructions for hashtags, in the order in which a suffix grows by them."""


def lengthened(builder: PromptBuilder, suffix: str, length: int) -> tuple[int, ...]:
    """`suffix` with as much advice behind it as makes `length` tokens exactly (the last sentence
    is cut off where they end; behind the last piece of advice the first comes again)."""
    text = suffix
    for sentence in cycle(ADVICE):
        ids = builder.plain(text)
        if len(ids) > length:  # one more, so that no cut word is the text's own end
            return ids[:length]
        text += " " + sentence
    raise AssertionError


def masked(length: int) -> Condition:
    """A masked suffix of that many tokens, natural positions."""
    return Condition(f"masked-{length}", room=length)


def visible(suffix: tuple[int, ...]) -> Condition:
    """The same length, visible."""
    return Condition(f"visible-{len(suffix)}", len(suffix), suffix, "all")


def check_lengths(lengths: Sequence[int]) -> tuple[int, ...]:
    """The lengths in order, each once. Raises SidecarError for none, or one out of range."""
    for length in lengths:
        if not 0 <= length <= MAX_LENGTH:
            raise SidecarError(
                f"A suffix of {length} tokens cannot be measured; lengths go from 0 to "
                f"{MAX_LENGTH:,}."
            )
    if not lengths:
        raise SidecarError("Name at least one length in tokens, such as --lengths 25,100.")
    return tuple(sorted(set(lengths)))


def sweep_conditions(
    lengths: Sequence[int], suffixes: Sequence[tuple[int, ...]] = ()
) -> tuple[Condition, ...]:
    """What `alpha.measure` has to measure for a sweep; `suffixes` are those to be seen as well."""
    return (Condition(BASELINE), *map(masked, lengths), *map(visible, suffixes))


def pool_sweep(results: Sequence[DocumentAlpha], lengths: Sequence[int]) -> dict[str, Any]:
    """{lengths: {"25": {identical, masked, cost, ci95, …}}, documents}.

    cost = identical - masked and ci95 is its interval, `relative` the same in parts of identical;
    where the suffix was seen as well there are
    `visible`, `leak` = masked - visible, and `leak_ci95`.
    """
    if not results:
        return {"documents": 0, "positions": 0, "lengths": {}}
    table = Table(results)
    points = {}
    for length in lengths:
        hidden, seen = f"masked-{length}", f"visible-{length}"
        gap = table.difference(hidden, BASELINE)
        point = {
            "identical": table.alpha(BASELINE),
            "masked": table.alpha(hidden),
            "cost": -gap["difference"],
            "ci95": _negative(gap["ci95"]),
            "relative": gap["relative"] and -gap["relative"],
            "relative_ci95": _negative(gap["relative_ci95"]),
        }
        if seen in table.names:
            leak = table.difference(hidden, seen)
            point |= {
                "visible": table.alpha(seen),
                "leak": leak["difference"],
                "leak_ci95": leak["ci95"],
            }
        points[str(length)] = point
    return {"documents": len(results), "positions": table.positions, "lengths": points}


def _negative(interval: list[float] | None) -> list[float] | None:
    return interval and [-interval[1], -interval[0]]
