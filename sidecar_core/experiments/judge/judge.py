"""Is the sidecar's list as good as the standalone's? A language model as judge, in both orders.

A judge answers "A", "B" or "tie" to two lists for one summary. Each comparison is made in both
orders: the sidecar's list first, then the standalone's. Only a list that wins both times wins; all
else is a tie, so that a judge who always prefers the first place decides nothing. The judge's
answer is the one of the three that the model finds most probable, so there is no luck in it; the
reason that it then writes explains the answer but does not make it.

Beside this strict rule stands an order-corrected one (`preference`). A small model may give the
first place so much that it always answers "A", and still give a good list more than a bad one. The
log-odds of A against B in the two orders are

    sidecar first:     log A/B = place + quality
    standalone first:  log A/B = place - quality

so half their difference is what the judge thinks of the lists, and half their sum is its position
bias.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, Protocol

import torch

from sidecar_core.decoding.cache import SegmentedCache
from sidecar_core.decoding.passes import forward
from sidecar_core.decoding.prefix import prefill
from sidecar_core.errors import SidecarError
from sidecar_core.models.kernels.kind import BLOCK
from sidecar_core.models.pair import LoadedModel
from sidecar_core.prompts import PromptBuilder, Segment
from sidecar_core.text import TokenStream

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Answer = Literal["first", "second", "tie"]
Outcome = Literal["sidecar", "standalone", "tie"]

QUESTION = """Here are a summary and two lists of hashtags for it.

Summary:
{summary}

List A: {first}
List B: {second}

Which list is better? A good list names what the summary is about. It holds nothing that the \
summary does not say, and nothing twice. If neither is better, say tie.
Answer with A, B or tie, then give the reason in one short sentence."""

ANSWER_CUE = "Answer:"
REASON_CUE = "\nReason:"
ANSWERS: dict[Answer, str] = {"first": " A", "second": " B", "tie": " tie"}
REASON_TOKENS = 40

MARGIN = 0.5
"""Log-odds (nats) within which the order-corrected rule calls a tie: odds of 1.65 to 1. Chosen
before anything was judged; do not fit it to results."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One answer to one order. `log_probabilities` are the judge's for each of the answers."""

    answer: Answer
    reason: str = ""
    log_probabilities: dict[str, float] = field(default_factory=dict)


class Judge(Protocol):
    """Whoever can say which of two lists is better. `name` is for reports, `key` names everything
    that a verdict follows from."""

    name: str
    key: str

    def compare(self, summary: str, first: Sequence[str], second: Sequence[str]) -> Verdict: ...


class ModelJudge:
    """A causal language model as judge; for use by one thread.

    What two questions in a row have in common at their beginning is read once. With
    `reasons=False` it gives answers only, which is much faster.
    """

    def __init__(
        self,
        model: LoadedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        reasons: bool = True,
    ) -> None:
        self.model, self.tokenizer, self.reasons = model, tokenizer, reasons
        self.name = model.name
        self.prompts = PromptBuilder(tokenizer)
        self.stop_ids = model.eos_ids
        self.key = self._key()
        self._ids: tuple[int, ...] = ()
        self._cache = SegmentedCache()

    def compare(self, summary: str, first: Sequence[str], second: Sequence[str]) -> Verdict:
        """The most probable answer. Raises SidecarError for a summary that is too long."""
        question = QUESTION.format(summary=summary, first=_written(first), second=_written(second))
        ids = (*self.prompts.text_only(question).ids, *self.prompts.plain(ANSWER_CUE))
        if len(ids) + REASON_TOKENS + 8 > self.model.max_positions:
            raise SidecarError(
                f"The judge {self.name} has room for {self.model.max_positions:,} tokens and the "
                f"question has {len(ids):,}; use a shorter summary."
            )
        scores = self._read(ids)
        answers = {
            name: self._score(scores, self.prompts.plain(text)) for name, text in ANSWERS.items()
        }
        best = max(answers, key=lambda name: answers[name])
        reason = self._reason(ANSWERS[best]) if self.reasons else ""
        return Verdict(best, reason, {ANSWERS[n].strip(): p for n, p in answers.items()})

    def _key(self) -> str:
        """Weights and every word that the judge is given or can say, as tokens."""
        words = [ANSWER_CUE, *ANSWERS.values(), REASON_CUE if self.reasons else ""]
        asked = [self.prompts.text_only(QUESTION).parts, *map(self.prompts.plain, words)]
        length = [REASON_TOKENS, sorted(self.stop_ids)] if self.reasons else []
        return json.dumps([self.model.fingerprint, asked, length])

    def _read(self, ids: tuple[int, ...]) -> torch.Tensor:
        """Log-probabilities [vocabulary] of what comes behind `ids`, which the cache then holds."""
        same = takewhile(lambda pair: pair[0] == pair[1], zip(self._ids, ids, strict=False))
        known = min(len(list(same)), len(ids) - 1)
        known -= known % BLOCK  # where reading always begins, so that no verdict depends on others
        self._cache.rollback(known)
        self._ids = ids[:known]
        rest = Segment("question", ids[known:-1])
        for _ in prefill(self.model, self._cache, [rest], known):
            pass
        self._ids = ids
        logits = forward(self.model, self._cache, ids[-1:], len(ids) - 1, segment="question")
        return logits[0].log_softmax(-1)

    def _score(self, scores: torch.Tensor, answer: tuple[int, ...]) -> float:
        """Log-probability of an answer, which is one token for most tokenizers."""
        total = float(scores[answer[0]])
        if len(answer) > 1:
            cache = self._cache.fork()
            rows = forward(
                self.model, cache, answer[:-1], cache.length, segment="answer", rows=len(answer) - 1
            ).log_softmax(-1)
            total += sum(float(row[t]) for row, t in zip(rows, answer[1:], strict=True))
        return total

    def _reason(self, answer: str) -> str:
        """One line in the model's words, greedy."""
        stream, reason = TokenStream(self.tokenizer), ""
        cache = self._cache.fork()
        tokens: Sequence[int] = self.prompts.plain(answer + REASON_CUE)
        for _ in range(REASON_TOKENS):
            logits = forward(self.model, cache, tokens, cache.length, segment="reason")
            token = int(logits[0].argmax())
            if token in self.stop_ids:
                break
            reason += stream.push(token)
            if "\n" in reason.strip():
                break
            tokens = (token,)
        return (reason + stream.flush()).strip().partition("\n")[0]


def _written(tags: Sequence[str]) -> str:
    return " ".join(f"#{tag}" for tag in tags) or "(empty)"


def compare(
    judge: Judge, summary: str, sidecar: Sequence[str], standalone: Sequence[str]
) -> tuple[Outcome, tuple[Verdict, ...]]:
    """Both orders, the sidecar's list first and then the standalone's; identical lists tie
    unasked."""
    if list(sidecar) == list(standalone):
        return "tie", ()
    verdicts = (
        judge.compare(summary, sidecar, standalone),
        judge.compare(summary, standalone, sidecar),
    )
    return outcome(*verdicts), verdicts


def outcome(sidecar_first: Verdict, standalone_first: Verdict) -> Outcome:
    """The list that won in both orders; else a tie."""
    match sidecar_first.answer, standalone_first.answer:
        case "first", "second":
            return "sidecar"
        case "second", "first":
            return "standalone"
        case _:
            return "tie"


@dataclass(frozen=True, slots=True)
class Preference:
    """What both orders say together, in nats: `quality` is the log-odds for the sidecar's list,
    `place` those for whatever list stands first."""

    quality: float
    place: float

    @property
    def outcome(self) -> Outcome:
        """A tie within `MARGIN`.

        >>> Preference(quality=0.8, place=3.0).outcome
        'sidecar'
        """
        if abs(self.quality) <= MARGIN:
            return "tie"
        return "sidecar" if self.quality > 0 else "standalone"


def preference(verdicts: Sequence[Verdict]) -> Preference | None:
    """Of the verdicts of `compare`. Identical lists, which were not judged, are equally good; None
    for a judge that gives no probabilities."""
    if not verdicts:
        return Preference(0.0, 0.0)
    if not all(verdict.log_probabilities for verdict in verdicts):
        return None
    sidecar_first, standalone_first = (
        verdict.log_probabilities[_A] - verdict.log_probabilities[_B] for verdict in verdicts
    )
    return Preference(
        (sidecar_first - standalone_first) / 2, (sidecar_first + standalone_first) / 2
    )


_A, _B = ANSWERS["first"].strip(), ANSWERS["second"].strip()
