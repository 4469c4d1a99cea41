"""Prompts as ordered, named token segments.

Every segment is tokenised on its own, so its span is exact by construction. Only template text (the
chat template around the user's words) may become special tokens; the article, the suffix and all
else that a user types is text and stays text: `<|im_end|>` in an article is six or so ordinary
tokens. The target's prompt is the draft's prompt without its `suffix`, token for token.

Segments, in order: `head` (chat template up to the document), `document`, `instruction`, `suffix`
(draft only), `tail` (chat template between the user's words and the answer).
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tokenizers import Tokenizer

from sidecar_core.errors import BadInput, SidecarError
from sidecar_core.settings import MAX_ARTICLE_CHARS, MAX_ARTICLE_TOKENS

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SYSTEM = "You are a concise assistant."
DOCUMENT_OPENING = "Document:\n"
SUMMARY_OPENING = "Summary:\n"
INSTRUCTION = "\n\nSummarize the document in 3 bullets. Keep each bullet under 18 words."
ZERO_WIDTH_JOINER = "\u200d"

_USER_MARK = "USER-WORDS-0b9f4c"


@dataclass(frozen=True, slots=True)
class Segment:
    """A named run of tokens."""

    name: str
    ids: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Prompt:
    """Segments in the order in which the model reads them; no two share a name."""

    segments: tuple[Segment, ...]

    def __len__(self) -> int:
        return sum(map(len, self.segments))

    @property
    def ids(self) -> tuple[int, ...]:
        """All tokens in order."""
        return tuple(token for segment in self.segments for token in segment.ids)

    @property
    def lengths(self) -> tuple[tuple[str, int], ...]:
        """(name, tokens) of every segment, in order."""
        return tuple((segment.name, len(segment)) for segment in self.segments)

    @property
    def parts(self) -> list[list[Any]]:
        """[name, tokens] of every segment, in order, as JSON: what a prompt is, borders and all."""
        return [[segment.name, list(segment.ids)] for segment in self.segments]

    def segment(self, name: str) -> Segment:
        """The segment of that name. Raises KeyError where there is none."""
        for segment in self.segments:
            if segment.name == name:
                return segment
        raise KeyError(name)

    def span(self, name: str) -> range:
        """Indices into `ids` of that segment's tokens. Raises KeyError where there is none."""
        start = 0
        for segment in self.segments:
            if segment.name == name:
                return range(start, start + len(segment))
            start += len(segment)
        raise KeyError(name)

    def without(self, *names: str) -> Prompt:
        """The same prompt with those segments left out."""
        return Prompt(tuple(s for s in self.segments if s.name not in names))


class PromptBuilder:
    """Makes prompts for one tokenizer; made once per tokenizer, safe to share between threads.

    Raises SidecarError for a tokenizer or a chat template that it cannot work with.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise SidecarError(
                "This model's tokenizer has no `tokenizers` backend (tokenizer.json); "
                "choose a model that comes with one."
            )
        description = backend.to_str()
        self._template = _bare(Tokenizer.from_str(description))
        self._plain = _bare(Tokenizer.from_str(json.dumps(_text_only(json.loads(description)))))
        self._head, self._tail = _frame(tokenizer)
        if not self.template(self._tail):
            raise SidecarError(
                "This model's chat template puts nothing after the user's text, so nothing says "
                "where the answer begins; choose an instruction-tuned chat model."
            )

    def plain(self, text: str) -> tuple[int, ...]:
        """Tokens of `text` as text: never a special or otherwise added token, no BOS or EOS."""
        return tuple(self._plain.encode(text, add_special_tokens=False).ids)

    def template(self, text: str) -> tuple[int, ...]:
        """Tokens of template text: special tokens written out in it become special tokens."""
        return tuple(self._template.encode(text, add_special_tokens=False).ids)

    def article(self, document: str, suffix: str = "", instruction: str = INSTRUCTION) -> Prompt:
        """The prompt that asks for what `instruction` says about `document`: a summary, unless
        another is given. An empty suffix is left out."""
        return self._prompt(DOCUMENT_OPENING, document, instruction, suffix)

    def text_only(self, text: str) -> Prompt:
        """The chat template around any text, which is the segment `document`."""
        return self._prompt("", clean(text))

    def standalone(self, summary: str, suffix: str) -> Prompt:
        """The standalone tagger's prompt: the summary as the document, the suffix as the task."""
        return self._prompt(SUMMARY_OPENING, summary.strip(), "\n\n" + suffix.strip())

    def first_tokens(self, text: str, n: int) -> str:
        """The longest beginning of the cleaned `text` that is at most `n` tokens.

        Cut where a token ends and never inside a character; white space at the cut is dropped, and
        so is a joiner that would join nothing (emoji).
        """
        text = clean(text)
        encoding = self._plain.encode(text, add_special_tokens=False)
        keep = min(n, len(encoding.ids))
        while 0 < keep < len(encoding.ids):
            # A character that is split over both tokens lies in the span of each.
            end = min(encoding.offsets[keep - 1][1], encoding.offsets[keep][0])
            beginning = text[:end].rstrip().rstrip(ZERO_WIDTH_JOINER)
            if len(self.plain(beginning)) <= n:
                return beginning
            keep -= 1
        return text if keep else ""

    def _prompt(
        self, opening: str, document: str, instruction: str = "", suffix: str = ""
    ) -> Prompt:
        segments = (
            Segment("head", self.template(self._head + opening)),
            Segment("document", self.plain(document)),
            Segment("instruction", self.plain(instruction)),
            Segment("suffix", self.plain(suffix)),
            Segment("tail", self.template(self._tail)),
        )
        return Prompt(tuple(segment for segment in segments if segment.ids))


def clean(text: str) -> str:
    """`text` as the models get it.

    Line ends become \\n; control characters other than \\n and \\t, and lone surrogates, become
    spaces; white space and byte order marks around the text go. All else stays as it is: markup,
    emoji, right-to-left script, special tokens.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", " ", text)
    return text.strip().strip("\ufeff").strip()


BLANKS = frozenset("\u2800\u115f\u1160\u3164\uffa0")
"""Letters and signs without ink: the blank Braille pattern and the Hangul fillers."""


def is_blank(text: str) -> bool:
    """Whether there is nothing to see: white space, controls, joiners, marks on nothing, blanks."""
    return all(ch in BLANKS or unicodedata.category(ch)[0] in "ZCM" for ch in text)


@dataclass(frozen=True, slots=True)
class Article:
    """An article, cleaned once (see `clean`), and the key that names its text without holding it.

    >>> Article.of(" A fire. ") == Article.of("A fire.")
    True
    """

    text: str
    key: str

    @classmethod
    def of(cls, text: str) -> Article:
        """`text` cleaned, whatever its length."""
        cleaned = clean(text)
        return cls(cleaned, hashlib.sha256(cleaned.encode()).hexdigest())


def check_text(text: str | Article) -> Article:
    """The article, checked as far as that needs no tokenizer. Raises BadInput for text that is
    empty, blank or longer than MAX_ARTICLE_CHARS characters."""
    if isinstance(text, Article):
        return text
    if not isinstance(text, str):
        raise BadInput("The article must be text.")
    if len(text) > MAX_ARTICLE_CHARS:
        raise BadInput(
            f"The article has {len(text):,} characters; the limit is {MAX_ARTICLE_CHARS:,}. "
            "Use a shorter one."
        )
    article = Article.of(text)
    if is_blank(article.text):
        raise BadInput("The article is empty. Provide some text.")
    return article


def check_article(text: str | Article, builder: PromptBuilder, limit: int) -> Article:
    """The article, checked to have at most `limit` tokens; BadInput for more. Nothing is cut
    here: `builder.first_tokens` cuts on request."""
    article = check_text(text)
    if limit < 1:
        raise BadInput(
            "The models have no room for an article beside this task's instruction, its answer "
            "and the summary; shorten the instruction, or ask for fewer tokens."
        )
    if (tokens := len(builder.plain(article.text))) > limit:
        raise BadInput(
            f"The article has {tokens:,} tokens; the limit is {limit:,}. "
            f"Shorten it, or choose to use only its first {limit:,} tokens."
        )
    return article


def unrelated_prompt(text: str, builder: PromptBuilder, room: int) -> Prompt:
    """The draft's prompt of a text that is not the article, of at most `room` tokens with its
    frame. Raises SidecarError for a text that is blank, or has more tokens than an article may."""
    prompt = builder.text_only(text)
    tokens = dict(prompt.lengths).get("document", 0)
    if not tokens:
        raise SidecarError("An unrelated draft prompt needs some text; type a few words.")
    limit = max(0, min(MAX_ARTICLE_TOKENS, room - (len(prompt) - tokens)))
    if tokens > limit:
        raise SidecarError(
            f"The draft text has {tokens:,} tokens; the limit is {limit:,}. Shorten it."
        )
    return prompt


def _bare(tokenizer: Tokenizer) -> Tokenizer:
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _text_only(description: dict[str, Any]) -> dict[str, Any]:
    """A tokenizer.json without added tokens.

    `split_special_tokens` is not enough: it leaves added tokens that are not marked special, such
    as Qwen's `<tool_call>`. Some vocabularies list the added tokens as well, where a model that
    looks up whole words could still find them; there they get names that no text can hold. Tokens
    which merges build (runs of spaces in some vocabularies) are ordinary text and keep their names.
    """
    model = dict(description["model"])
    added = {token["content"] for token in description["added_tokens"]}
    keep = {model.get("unk_token")}
    for merge in model.get("merges", ()):
        left, right = merge.split(" ") if isinstance(merge, str) else merge
        keep.update((left, right, left + right))

    def renamed(piece: str) -> str:
        return f"\x00{piece}" if piece in added - keep else piece

    vocabulary = model["vocab"]
    if isinstance(vocabulary, dict):
        model["vocab"] = {renamed(piece): token for piece, token in vocabulary.items()}
    else:
        model["vocab"] = [[renamed(piece), score] for piece, score in vocabulary]
    return {**description, "model": model, "added_tokens": [], "post_processor": None}


def _frame(tokenizer: PreTrainedTokenizerBase) -> tuple[str, str]:
    """The template text before and after the user's words."""
    if not tokenizer.chat_template:
        opening = tokenizer.bos_token if _adds_bos(tokenizer) else ""
        return f"{opening}{SYSTEM}\n\n", "\n\nAnswer:\n"
    user = {"role": "user", "content": _USER_MARK}
    render = _renderer(tokenizer)
    text = render([{"role": "system", "content": SYSTEM}, user], add_generation_prompt=True)
    if text is None or SYSTEM not in text:  # the template knows no system role
        user = {"role": "user", "content": f"{SYSTEM}\n\n{_USER_MARK}"}
        text = render([user], add_generation_prompt=True)
    head, mark, tail = (text or "").partition(_USER_MARK)
    if not mark or _USER_MARK in tail:
        raise SidecarError(
            "This model's chat template does not hold the user's text exactly once; "
            "choose an instruction-tuned chat model."
        )
    return head, tail


def _renderer(tokenizer: PreTrainedTokenizerBase) -> Callable[..., str | None]:
    """Renders messages with the chat template; None where the template refuses them."""

    def render(messages: list[dict[str, str]], **options: Any) -> str | None:
        try:
            # `enable_thinking` is read by templates of reasoning models only.
            text = tokenizer.apply_chat_template(
                messages, tokenize=False, enable_thinking=False, **options
            )
        except Exception:  # templates raise whatever they like
            return None
        return str(text)

    return render


def _adds_bos(tokenizer: PreTrainedTokenizerBase) -> bool:
    ids = tokenizer("a", add_special_tokens=True)["input_ids"]
    return tokenizer.bos_token_id is not None and ids[0] == tokenizer.bos_token_id
