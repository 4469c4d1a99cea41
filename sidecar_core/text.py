"""From tokens to text while they come.

A token is no piece of text: an emoji may take three of them, and some tokenizers tell a space only
from the token before it. `TokenStream` gives out text once it is certain. (The decode stream of
the `tokenizers` library can neither be asked for what it holds back nor be copied for a preview.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

INCOMPLETE = "…"
"""Stands for a character that is not complete yet, in previews only."""

_REPLACEMENT = "\ufffd"


def has_half_characters(text: str) -> bool:
    """Whether `text` holds lone surrogates: halves of characters, which no UTF-8 file can hold."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def whole_characters(text: str) -> str:
    """`text` with U+FFFD for every lone surrogate."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class TokenStream:
    """Text of one growing token sequence; special tokens add none.

    All that `push` returned, and then `flush`, joined is the text of the whole sequence decoded at
    once. No update ends within a character, so U+FFFD only comes through where the text really
    holds it, or holds bytes that are no character.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        self._special = frozenset(
            token for token, added in tokenizer.added_tokens_decoder.items() if added.special
        )
        self._shown: list[int] = []  # tokens of the latest update: context for the next one
        self._held: list[int] = []  # tokens behind them, not given out yet

    def push(self, token: int) -> str:
        """What `token` adds to the text: "" while a character is incomplete."""
        if token in self._special:
            return ""
        self._held.append(token)
        added = self._added()
        if added.endswith(_REPLACEMENT):
            return ""
        self._shown, self._held = self._held, []
        return added

    def flush(self) -> str:
        """The rest, at the end of the sequence."""
        added = self._added()
        self._shown, self._held = self._held or self._shown, []
        return added

    def preview(self, tokens: Iterable[int]) -> list[str]:
        """What each of `tokens` would add if pushed in turn; this stream stays as it is.

        A token that leaves a character incomplete is shown as "…".
        """
        ahead = TokenStream.__new__(TokenStream)
        ahead._tokenizer, ahead._special = self._tokenizer, self._special
        ahead._shown, ahead._held = self._shown, self._held.copy()
        texts = []
        for token in tokens:
            text = ahead.push(token)
            waits = not text and ahead._held and token not in self._special
            texts.append(INCOMPLETE if waits else text)
        return texts

    def _added(self) -> str:
        return self._decode(self._shown + self._held)[len(self._decode(self._shown)) :]

    def _decode(self, tokens: list[int]) -> str:
        text = self._tokenizer.decode(
            tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return str(text)
