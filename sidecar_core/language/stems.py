"""Which language a text is in, and the stems of its words.

The language is identified by `py3langid`, stems are Snowball's. Where the language is not sure, or
Snowball has no stemmer for it, a word is its own stem.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import cache
from typing import Any

import snowballstemmer

STEMMERS = {
    "ar": "arabic", "hy": "armenian", "eu": "basque", "ca": "catalan", "cs": "czech",
    "da": "danish", "nl": "dutch", "en": "english", "eo": "esperanto", "et": "estonian",
    "fi": "finnish", "fr": "french", "de": "german", "el": "greek", "hi": "hindi",
    "hu": "hungarian", "id": "indonesian", "ga": "irish", "it": "italian", "lt": "lithuanian",
    "ne": "nepali", "no": "norwegian", "fa": "persian", "pl": "polish", "pt": "portuguese",
    "ro": "romanian", "ru": "russian", "sr": "serbian", "es": "spanish", "sv": "swedish",
    "ta": "tamil", "tr": "turkish",
}  # fmt: skip
"""ISO 639-1 code → Snowball's name."""

ALIASES = {"nn": "no", "nb": "no", "bs": "sr", "hr": "sr", "arz": "ar", "ary": "ar", "yue": "zh"}
"""Close relatives that share a stemmer, or a list of function words."""

SURE = 0.5
"""A language counts from this probability on."""

MIN_LETTERS, MAX_CHARS = 12, 2_000
"""With fewer letters nothing is sure; more characters than this add nothing."""


def language_of(text: str, sure: float = SURE) -> str:
    """The ISO 639-1 code of the language of `text`; "" where that is not sure."""
    text = text[:MAX_CHARS]
    if sum(map(str.isalpha, text)) < MIN_LETTERS:
        return ""
    shares: dict[str, float] = {}
    for label, share in _identifier().rank(text)[:8]:
        code = ALIASES.get(label, label)
        shares[code] = shares.get(code, 0.0) + share
    best = max(shares, key=lambda code: shares[code])
    return best if shares[best] >= sure else ""


def stemmer(language: str) -> Callable[[str], str]:
    """Lower-case word → stem. Not to be shared between threads: it holds state."""
    if language not in STEMMERS:
        return str
    stem = snowballstemmer.stemmer(STEMMERS[language]).stemWord
    return lambda word: unicodedata.normalize("NFC", stem(word))


@cache
def _identifier() -> Any:
    """Loaded at the first use (under a second), then shared: it is only read."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
