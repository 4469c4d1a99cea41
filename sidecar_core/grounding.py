"""Where a tag's words stand: in the summary, only in the document, or in neither.

The rule. A tag is split at hyphens and spaces into words, function words are dropped, and each word
is cut to its stem by the Snowball stemmer for English. A tag is *in* a text when each
of its stems is the stem of some word of the text, or when its letters, run together, are those of
consecutive whole words of the text (`brokenarrowplant` is in "the Broken Arrow plant"). The summary
is asked first, then the document: a tag that only the document holds is a leak.

The passage is the sentence of that text that holds the most of the tag's stems.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

import snowballstemmer

Place = Literal["summary", "document", "neither"]

MAX_PASSAGE = 200
"""Characters of a passage; a longer sentence is cut around the first word that was found."""

FUNCTION_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "for",
        "from",
        "in",
        "into",
        "is",
        "it",
        "its",
        "of",
        "off",
        "on",
        "or",
        "over",
        "s",
        "that",
        "the",
        "their",
        "to",
        "under",
        "was",
        "were",
        "with",
    ]
)


@dataclass(frozen=True, slots=True)
class Grounding:
    """Where a tag stands, and the sentence that shows it ("" for neither)."""

    place: Place
    passage: str = ""


def words(text: str) -> list[str]:
    """Runs of letters and digits, case folded and without accents, possessive 's cut off."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    plain = "".join(ch for ch in plain if not unicodedata.combining(ch))
    return re.findall(r"[^\W_]+", re.sub(r"['’]s?\b", "", plain))


def stems(text: str) -> frozenset[str]:
    """Stems of the words of `text`, function words left out."""
    stemmer = snowballstemmer.stemmer("english")  # holds state: one for each call
    return frozenset(stemmer.stemWords([w for w in words(text) if w not in FUNCTION_WORDS]))


def ground(tag: str, summary: str, document: str) -> Grounding:
    """Where `tag` stands, by the rule above. A tag without content words is in neither."""
    for place, text in (("summary", summary), ("document", document)):
        if is_in(tag, text):
            return Grounding("summary" if place == "summary" else "document", passage(tag, text))
    return Grounding("neither")


def is_in(tag: str, text: str) -> bool:
    """Whether `text` holds `tag`: all of its stems, or its letters run together."""
    wanted = stems(tag)
    if not wanted:
        return False
    there, plain, lengths = _index(text)
    if wanted <= there:
        return True
    return _spans_whole_words("".join(words(tag)), plain, lengths)


def passage(tag: str, text: str) -> str:
    """The sentence of `text` with the most of the tag's stems, the first of equals."""
    wanted, glued = stems(tag), "".join(words(tag))

    def score(sentence: str) -> int:
        there, plain, lengths = _index(sentence)
        return len(wanted & there) + len(wanted) * _spans_whole_words(glued, plain, lengths)

    best = max(re.split(r"(?<=[.!?])\s+|\n+", text.strip()), key=score, default="")
    return " ".join(_shortened(best, wanted).split())


def _index(text: str) -> tuple[frozenset[str], str, frozenset[int]]:
    """Stems of `text`, its words run together, and where in that each word begins or ends."""
    found = words(text)
    edges, at = {0}, 0
    for word in found:
        at += len(word)
        edges.add(at)
    return stems(text), "".join(found), frozenset(edges)


def _spans_whole_words(glued: str, plain: str, edges: frozenset[int]) -> bool:
    """Whether `glued` stands in `plain` from the beginning of a word to the end of one.

    The last word may go on with a plural s.
    """
    at = plain.find(glued)
    while at >= 0:
        end = at + len(glued)
        if at in edges and (end in edges or (plain[end : end + 1] == "s" and end + 1 in edges)):
            return True
        at = plain.find(glued, at + 1)
    return False


def _shortened(sentence: str, wanted: frozenset[str]) -> str:
    if len(sentence) <= MAX_PASSAGE:
        return sentence
    hits = (m.start() for m in re.finditer(r"\w+", sentence) if stems(m.group()) & wanted)
    start = max(0, next(hits, 0) - MAX_PASSAGE // 3)
    piece = sentence[start : start + MAX_PASSAGE]
    return ("…" if start else "") + piece + ("…" if start + MAX_PASSAGE < len(sentence) else "")
