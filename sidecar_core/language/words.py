"""Texts as words, in any script.

Words come from ICU, which finds them in Chinese, Japanese, Thai, Lao, Khmer and Burmese too, with a
dictionary, and keeps marks with their letters. A word with apostrophes is its parts ("l'eau",
"İstanbul'da"), a word with dots too, but for initials ("U.S." is one word). Emoji and punctuation
are no words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from icu4py.breakers import SentenceBreaker, WordBreaker

from sidecar_core.language.spelling import spelled

_NO_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua9e0-\ua9ff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, Japanese and Chinese; and Korean, whose particles join their word."""

_LETTERS = str.maketrans({"ı": "i", "ł": "l", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe", "ـ": ""})
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})

_ACCENTS = re.compile("(?<=[a-zα-ωıłøđæœе])[\u0300-\u036f]+|[\u0591-\u05c7\u064b-\u065f\u0670]")
"""Accents of Latin and Greek letters and of the Cyrillic е; vowel signs of Hebrew and Arabic. The
marks of other scripts are letters in all but name."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word as it stands in a text. `ending` marks what hangs on behind an apostrophe ("'s"),
    `shouted` a word of a line in capitals."""

    text: str
    ending: bool = False
    shouted: bool = False

    @property
    def acronym(self) -> bool:
        """Written in capitals, among words that are not."""
        return len(self.text) > 1 and self.text.isupper() and not self.shouted

    @property
    def capital(self) -> bool:
        return self.text[:1].isupper()


def tokens(text: str) -> list[Token]:
    """The words of `text` in order, numbers and signs spelled out (`spelling`)."""
    found = []
    for line in spelled(text).splitlines():
        words = [w for w in WordBreaker(_whole(line), "en") if any(map(str.isalnum, w))]
        capitals = sum(w.isupper() and len(w) > 1 for w in words)
        shouted = capitals > 2 and capitals > sum(any(map(str.islower, w)) for w in words)
        for word in words:
            parts = list(_parts(word))
            for number, part in enumerate(parts):
                last = number > 0 and number == len(parts) - 1
                ending = last and "." not in word and len(part) < 4 and len(parts[0]) > 2
                found.append(Token(part, ending, shouted))
    return found


def sentences(text: str) -> list[str]:
    """The sentences of `text`, each on one line."""
    parts = (" ".join(part.split()) for part in SentenceBreaker(_whole(text), "en"))
    return [part for part in parts if part]


def fold(word: str) -> str:
    """A word without case and accents: one form for İstanbul, istanbul and ISTANBUL."""
    plain = unicodedata.normalize("NFKD", word.replace("İ", "i")).casefold()
    return unicodedata.normalize("NFC", _ACCENTS.sub("", plain)).translate(_LETTERS)


def spellings(word: str) -> set[str]:
    """`fold`, and with umlauts written out (muenchen)."""
    lower = unicodedata.normalize("NFC", word.casefold())
    return {fold(word), fold(lower.translate(_UMLAUTS))}


def without_spaces(word: str) -> bool:
    """Whether `word` is of a script that runs words together."""
    return bool(_NO_SPACES.search(word))


def _whole(text: str) -> str:
    """Without lone surrogates, which ICU cannot read."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _parts(word: str) -> Iterator[str]:
    if re.fullmatch(r"(?:[^\W\d_]\.)+[^\W\d_]", word):  # initials
        yield word.replace(".", "")
        return
    for part in re.split(r"['’.,:·]", word):
        if any(map(str.isalnum, part)):
            yield part
