"""What can be said of a tag list without any model: count, form, duplicates, grounding, overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sidecar_core.grounding import ground, stems
from sidecar_core.language.stems import language_of
from sidecar_core.language.words import tokens

WANTED = range(3, 6)
"""How many tags the task asks for."""

MAX_WORDS = 3
"""A tag of more words is a phrase."""


def rules_of(tags: Sequence[str], summary: str, document: str) -> dict[str, Any]:
    """Counts for one list: all tags, those of one to three words, those that say what an earlier
    one said, and where they stand."""
    language = language_of(document)
    places = [ground(tag, summary, document).place for tag in tags]
    return {
        "count": len(tags),
        "count_as_asked": len(tags) in WANTED,
        "short": sum(1 <= len(tokens(tag)) <= MAX_WORDS for tag in tags),
        "duplicates": len(tags) - len({stems(tag, language) for tag in tags}),
        "in_summary": places.count("summary"),
        "only_in_document": places.count("document"),
        "in_neither": places.count("neither"),
    }


def overlap(one: Sequence[str], other: Sequence[str], language: str = "en") -> float | None:
    """Shared tags as a share of all distinct ones (Jaccard), inflections of `language` being one;
    None for two empty lists."""
    ours, theirs = ({stems(tag, language) for tag in tags} for tags in (one, other))
    return len(ours & theirs) / len(ours | theirs) if ours | theirs else None
