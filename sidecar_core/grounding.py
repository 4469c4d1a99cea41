"""Where a tag stands: in the summary, at least in part only in the document, or neither.

The rule. A tag is cut into words (`language.words`). Function words do not count ("of"), unless one
of the texts writes them as an acronym; "us" always counts, as the acronym. The others are the tag's
*content words*.

- **summary**: the summary supports every content word;
- **document**: a leak. At least one content word stands only in the document;
- **neither**: the rest: no word leaks, but at least one is in neither text.

A text supports a word when

- it has a word of the same stem; case and accents do not matter ("İstanbul" is "istanbul"). Stems
  are those of the article's language, or of the summary's where it surely is another one; where the
  language is not sure there is no stemming;
- or the word's letters are those of whole consecutive words of the text ("icecream" is in "ice
  creams"), from five letters on, with a digit from three;
- or, in scripts without spaces and in Korean, the word's letters stand in the text from where a
  word begins (渡轮 is in 柴油渡轮, 京都 is not in 東京都); a single letter must be a word;
- or the word is made of words of the two texts with three letters or more, one behind the other:
  then each of them counts by itself. So `oklahomablaze` leaks "oklahoma".

Acronyms are no words: where a text has "AIDS" or "US", the same letters all in lower case do not
support the tag, and a function word ("us", "it", "who") is only supported by the acronym itself.

Compounds: "Hafen" alone does not support `hafenrundfahrt`, nor "Hafenrundfahrt" `hafen`, since the
one says more than the other; "Rundfahrt durch den Hafen" supports it, by its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Literal

from sidecar_core.language.function_words import FUNCTION_WORDS
from sidecar_core.language.stems import language_of, stemmer
from sidecar_core.language.words import (
    Token,
    fold,
    sentences,
    spellings,
    tokens,
    without_spaces,
)

Place = Literal["summary", "document", "neither"]

MAX_PASSAGE = 200
"""Characters of a passage; a longer sentence is cut around the first word that was found."""

MIN_RUN = 5
"""Letters from which a word may be found in several words of a text."""

MIN_PART = 3
"""Letters of each of the words that a longer one is cut into."""

MIN_FACT = 6
"""Letters from which a watched fact may be part of a word of unknown other parts."""

MAX_WORD = 60
"""A longer word is not cut into parts."""

LINKS = {"de": ("s",), "nl": ("s",), "sv": ("s",), "da": ("s",), "no": ("s",)}
"""What may stand between the parts of a compound."""

OTHER_LANGUAGE = 0.9
"""From this probability on a summary is in another language than its article."""

ALWAYS_ACRONYMS = frozenset({"us"})

LOWER, CAPITAL, ACRONYM = 1, 2, 4
"""How a word is written in a text; they add up."""


@dataclass(frozen=True, slots=True)
class Grounding:
    """Where a tag stands, the sentence that shows it ("" for neither), and the words that decide:
    those only in the document, or those in neither text; () for a tag in the summary."""

    place: Place
    passage: str = ""
    words: tuple[str, ...] = ()


def ground(tag: str, summary: str, document: str) -> Grounding:
    """Where `tag` stands, by the rule above. A tag without content words is in neither."""
    return _texts(summary, document).ground(tag)


def stems(tag: str, language: str = "") -> frozenset[str]:
    """The stems of the tag's words without function words; of all, where nothing else is left."""
    stem = stemmer(language)
    words = [t.text.lower() for t in tokens(tag)]
    content = [word for word in words if not is_function_word(word, language)]
    return frozenset(fold(stem(word)) for word in content or words)


def is_function_word(word: str, language: str) -> bool:
    """Whether `word` only joins others; English rules where the language is not known."""
    known = FUNCTION_WORDS.get(language or "en", frozenset())
    return word.casefold() in known and word.casefold() not in ALWAYS_ACRONYMS


def is_in(tag: str, text: str) -> bool:
    """Whether `text` alone supports all content words of `tag`."""
    return ground(tag, text, "").place == "summary"


def names(tag: str, fact: str, texts: Iterable[str] = ()) -> bool:
    """Whether `tag` names `fact`, in whatever spelling: the fact's words, or words of their stems,
    stand in the tag one behind the other, and none is part of another word.

    A tag that is written as one word is cut into the fact and words of `texts` first: `tehraniran`
    names "Iran" where a text has "Tehran", and `tirana` never does. A fact of MIN_FACT letters or
    more may also begin or end such a word (`brokenarrowplant`).
    """
    wanted = "".join(fold(token.text) for token in tokens(fact))
    held = Text(" ".join(texts), language_of(" ".join(texts)))
    pieces = [
        piece
        for token in tokens(tag)
        for piece in _around(
            wanted, split(fold(token.text), held.surfaces | {wanted}, held.has_word)
        )
    ]
    there, starts = "".join(pieces), {0, *accumulate(map(len, pieces))}
    at = there.find(wanted) if wanted else -1
    while at >= 0:
        if at in starts and at + len(wanted) in starts:
            return True
        at = there.find(wanted, at + 1)
    keys = [held.keys_of(token.text) for token in tokens(fact)]
    found = [held.keys_of(piece) for piece in pieces]
    return bool(keys) and any(
        all(map(frozenset.intersection, keys, found[at : at + len(keys)]))
        for at in range(len(found) - len(keys) + 1)
    )


def _around(fact: str, pieces: tuple[str, ...]) -> Iterator[str]:
    """`pieces`, each that begins or ends with a long `fact` cut into that and the rest."""
    for piece in pieces:
        rest = len(piece) - len(fact)
        if len(fact) >= MIN_FACT and rest >= MIN_PART and piece.startswith(fact):
            yield from (fact, piece[len(fact) :])
        elif len(fact) >= MIN_FACT and rest >= MIN_PART and piece.endswith(fact):
            yield from (piece[:rest], fact)
        else:
            yield piece


@dataclass(frozen=True, slots=True)
class Wanted:
    """A word to look up: its folded letters, all forms of it, and how it must be written (0: in
    any way)."""

    letters: str
    keys: frozenset[str]
    style: int = 0


class Text:
    """The words of one text, to look others up in. Stems are those of `language` ("": none)."""

    def __init__(self, text: str, language: str = "") -> None:
        self.language = language
        self.text = text
        self.found: dict[str, int] = {}
        """Folded words, their spellings and stems → how they are written."""
        self.surfaces: set[str] = set()
        """Folded words that a longer one may be made of."""
        stem, known = stemmer(language), dict[str, frozenset[str]]()
        glued, starts, ends, at = [], set(), {0}, 0
        for token in tokens(text):
            if token.text not in known:
                known[token.text] = _keys(token.text, stem)
            style = ACRONYM if token.acronym else CAPITAL if token.capital else LOWER
            for key in () if token.ending else known[token.text]:
                self.found[key] = self.found.get(key, 0) | style
            plain = fold(token.text)
            if len(plain) >= MIN_PART and not is_function_word(token.text, language):
                self.surfaces.add(plain)
            glued.append(plain)
            starts.add(at)
            at += len(plain)
            ends.add(at)
        self._glued, self._starts, self._ends = "".join(glued), starts, ends

    def keys_of(self, word: str) -> frozenset[str]:
        """The forms under which `word` is looked up."""
        return _keys(word, stemmer(self.language))

    def wanted(self, word: str, style: int = 0) -> Wanted:
        """`word`, to be looked up in this text or one of its sentences."""
        return Wanted(fold(word), self.keys_of(word), style)

    def supports(self, wanted: Wanted) -> bool:
        """Whether the text has the word, or its letters, as `grounding` says."""
        if wanted.style:
            return bool(self.found.get(wanted.letters, 0) & wanted.style)
        return any(key in self.found for key in wanted.keys) or self.has_run(wanted.letters)

    def style(self, word: str) -> int:
        """How the text writes `word`, stems left out; 0: not at all."""
        return self.found.get(fold(word), 0)

    def has_word(self, word: str) -> bool:
        """Whether the text has a word of the same stem."""
        return any(key in self.found for key in self.keys_of(word))

    def has_run(self, letters: str) -> bool:
        """Whether folded `letters` stand in the text as whole words, or begin a word of a script
        without spaces. The last word may go on with a plural s."""
        loose = without_spaces(letters)
        number = any(map(str.isdigit, letters))
        if len(letters) < (2 if loose else 3 if number else MIN_RUN):
            return False
        at = self._glued.find(letters)
        while at >= 0:
            end = at + len(letters)
            plural = self._glued[end : end + 1] == "s" and end + 1 in self._ends
            if at in self._starts and (loose or end in self._ends or plural):
                return True
            at = self._glued.find(letters, at + 1)
        return False


def split(
    word: str, surfaces: set[str], ends_with: Callable[[str], bool], links: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """`word` as the fewest `surfaces` one behind the other; the last may also be anything that
    `ends_with` accepts, and `links` may stand in between. `(word,)` where there is no way."""
    if word in surfaces or len(word) < 2 * MIN_PART or len(word) > MAX_WORD:
        return (word,)
    best: dict[int, tuple[str, ...]] = {0: ()}
    for end in range(MIN_PART, len(word) + 1):
        for start in [at for at in best if at <= end - MIN_PART]:
            part, before = word[start:end], best[start]
            last = end == len(word) and start > 0
            if part not in surfaces and not (last and ends_with(part)):
                continue
            for stop in (end, *(end + len(x) for x in links if word.startswith(x, end))):
                if stop == len(word) > end:
                    continue  # a link joins: nothing ends with it
                if stop not in best or len(best[stop]) > len(before) + 1:
                    best[stop] = (*before, part)
    return best.get(len(word), (word,))


class Texts:
    """A summary and its document, to ground any number of tags in."""

    def __init__(self, summary: str, document: str) -> None:
        language = language_of(document) or language_of(summary)
        own = language_of(summary, OTHER_LANGUAGE) or language
        self.summary, self.document = Text(summary, own), Text(document, language)
        self._surfaces = self.summary.surfaces | self.document.surfaces
        self._sentences: dict[str, list[Text]] = {}
        self._known: dict[str, Grounding] = {}

    def ground(self, tag: str) -> Grounding:
        """Where `tag` stands; found once for each tag."""
        if tag not in self._known:
            self._known[tag] = self._ground(tag)
        return self._known[tag]

    def _ground(self, tag: str) -> Grounding:
        found = tokens(tag)
        content = [word for token in found for word in self._content(token)]
        if not content:
            return Grounding("neither")
        glued = "".join(fold(token.text) for token in found)
        plain = not any(map(self._special, content))
        if plain and self.summary.has_run(glued):
            return Grounding("summary", self.passage(content, glued, self.summary))
        missing = [word for word in content if not self.supports(self.summary, word)]
        if not missing:
            return Grounding("summary", self.passage(content, glued, self.summary))
        if plain and self.document.has_run(glued):
            leaked = missing
        else:
            leaked = [word for word in missing if self.supports(self.document, word)]
        if leaked:
            shown = self.passage(leaked, glued if plain else "", self.document)
            return Grounding("document", shown, tuple(dict.fromkeys(leaked)))
        return Grounding("neither", "", tuple(dict.fromkeys(missing)))

    def supports(self, text: Text, word: str) -> bool:
        """Whether `text` supports one content word."""
        return text.supports(text.wanted(word, self._special(word)))

    def passage(self, words: list[str], glued: str, text: Text) -> str:
        """The sentence of `text` with the most of the words, the first of equals."""
        if text.text not in self._sentences:
            self._sentences[text.text] = [Text(s, text.language) for s in sentences(text.text)]

        wanted = [text.wanted(word, self._special(word)) for word in words]

        def score(sentence: Text) -> int:
            return sum(map(sentence.supports, wanted)) + len(wanted) * sentence.has_run(glued)

        best = max(self._sentences[text.text], key=score, default=None)
        return "" if best is None else _shortened(best, words)

    def _content(self, token: Token) -> tuple[str, ...]:
        """The content words of one word of a tag: itself, its parts, or none."""
        word = token.text.lower()
        if is_function_word(word, self.document.language):
            return (word,) if self._writes(word) & ACRONYM else ()
        if self.summary.supports(self.summary.wanted(word)):
            return (word,)

        def known(part: str) -> bool:
            return self.summary.has_word(part) or self.document.has_word(part)

        parts = split(fold(word), self._surfaces, known, LINKS.get(self.document.language, ()))
        return parts if len(parts) > 1 else (word,)

    def _special(self, word: str) -> int:
        """How a text must write `word` to support it; 0 where any way will do."""
        if word.casefold() in ALWAYS_ACRONYMS or is_function_word(word, self.document.language):
            return ACRONYM
        return CAPITAL | ACRONYM if self._writes(word) & ACRONYM else 0

    def _writes(self, word: str) -> int:
        return self.summary.style(word) | self.document.style(word)


@lru_cache(maxsize=8)
def _texts(summary: str, document: str) -> Texts:
    """The same texts are asked about tag by tag, and again at every update of the page."""
    return Texts(summary, document)


def _keys(word: str, stem: Callable[[str], str]) -> frozenset[str]:
    plain, lower = spellings(word), word.replace("İ", "i").lower()
    return frozenset({*plain, fold(stem(lower)), *map(stem, plain)})


def _shortened(sentence: Text, words: list[str]) -> str:
    text = sentence.text
    if len(text) <= MAX_PASSAGE:
        return text
    plain = text.casefold()
    hits = [plain.find(word) for word in words]
    if not any(hit >= 0 for hit in hits):
        stems = frozenset[str]().union(*map(sentence.keys_of, words))
        alike = [t.text for t in tokens(text) if sentence.keys_of(t.text) & stems]
        hits = [plain.find(word.casefold()) for word in alike]
    start = max(0, min((hit for hit in hits if hit >= 0), default=0) - MAX_PASSAGE // 3)
    piece = text[start : start + MAX_PASSAGE]
    return ("…" if start else "") + piece + ("…" if start + MAX_PASSAGE < len(text) else "")
