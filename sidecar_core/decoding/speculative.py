"""The draft-verify loop: the draft proposes γ tokens, the target judges them in one pass.

    x_1..x_γ ~ q                      γ draft passes
    p_1..p_{γ+1}                      one target pass over [last token, x_1..x_γ]
    accept x_i while u_i ≤ min(1, p_i(x_i) / q_i(x_i))
    at the first rejection            emit one token of max(0, p_i - q_i), renormalised
    if all are accepted               emit one more token of p_{γ+1} (bonus)

What is emitted is distributed as p, whatever q is (Leviathan et al. 2023, appendix A.1). At
temperature 0 the rule is: accept x_i when it is the target's argmax, else emit that argmax.

Both caches trail the text: a pass feeds whatever its cache lacks. After a round the target's cache
holds everything but the last token; so does the draft's, but for one token more after a fully
accepted block, which rides along in the next round's first draft pass. Hence one pass per drafted
token and one per verification, and none besides.

A draft that fails is lost, not the run: its block ends where it failed, what it proposed until then
is judged as ever, and the target goes on alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field

import torch

from sidecar_core.decoding.cache import SegmentedCache
from sidecar_core.decoding.draft_length import DraftLength
from sidecar_core.decoding.passes import forward
from sidecar_core.decoding.sampling import Sampler, accepts, draw, overlap, residual, uniform
from sidecar_core.errors import ModelFailed
from sidecar_core.events import (
    BlockEnd,
    BlockEnded,
    Candidates,
    DraftLost,
    Event,
    FinishReason,
    PlainPass,
    RoundStarted,
    TokenAccepted,
    TokenBonus,
    TokenCorrected,
    TokenDrafted,
    TokenRejected,
)
from sidecar_core.models.pair import LoadedModel
from sidecar_core.text import TokenStream


@dataclass(slots=True)
class Side:
    """One model's view of the text: its cache, and the tokens behind the columns already there.

    `tail` are the prompt's last tokens (at least one), which no cache holds yet; the first stands
    at `position`. `emitted` tokens follow them. `passes` and `seconds` count forward passes,
    `extra_seconds` those that only measure.
    """

    model: LoadedModel
    cache: SegmentedCache
    tail: tuple[int, ...]
    position: int
    emitted: list[int] = field(default_factory=list)
    passes: int = 0
    seconds: float = 0.0
    extra_seconds: float = 0.0
    base: int = field(init=False)

    def __post_init__(self) -> None:
        self.base = self.cache.length

    @property
    def fed(self) -> int:
        """How many tokens of tail and emitted text the cache holds."""
        return self.cache.length - self.base

    @property
    def next_position(self) -> int:
        """Position of the token that would be emitted next."""
        return self.position + len(self.tail) + len(self.emitted)

    @property
    def one_row(self) -> bool:
        """Whether the cache lacks nothing but the last token of the text."""
        return self.fed == len(self.tail) + len(self.emitted) - 1

    def plain_pass(self) -> float:
        """Seconds of a pass over the last token alone; its column is forgotten."""
        start, length = time.perf_counter(), self.cache.length
        self._pass([*self.tail, *self.emitted][-1:], 1)
        seconds = time.perf_counter() - start
        self.cache.rollback(length)
        self.extra_seconds += seconds
        return seconds

    def run(self, proposed: Sequence[int], rows: int) -> torch.Tensor:
        """Feed what the cache lacks of the text and of `proposed`; logits [rows, vocabulary].

        That is one pass, or, on a machine where rows depend on each other, a pass for each token.
        """
        start = time.perf_counter()
        tokens = [*self.tail, *self.emitted, *proposed][self.fed :]
        if self.model.calibration.rows_alike or len(tokens) == 1:
            logits = self._pass(tokens, rows)
        else:
            each = [self._pass([token], min(rows, 1)) for token in tokens]
            logits = torch.cat(each[len(each) - rows :]) if rows else each[-1]
        self.passes += 1
        self.seconds += time.perf_counter() - start
        return logits

    def _pass(self, tokens: Sequence[int], rows: int) -> torch.Tensor:
        fed = self.fed
        of_tail = min(max(len(self.tail) - fed, 0), len(tokens))
        return forward(
            self.model,
            self.cache,
            tokens,
            self.position + fed,
            segment=(("tail", of_tail), ("summary", len(tokens) - of_tail)),
            rows=rows,
        )

    def commit(self, tokens: Sequence[int]) -> None:
        """Append emitted tokens and forget every column that is not a committed token's."""
        self.emitted.extend(tokens)
        committed = len(self.tail) + len(self.emitted) - 1
        if self.fed > committed:
            self.cache.rollback(self.base + committed)


@dataclass(slots=True)
class Clock:
    """Seconds since the run began, and seconds spent on overlaps."""

    began: float = field(default_factory=time.perf_counter)
    overlap: float = 0.0

    def now(self) -> float:
        return time.perf_counter() - self.began

    def overlap_of(self, p: torch.Tensor, q: torch.Tensor) -> float:
        start = time.perf_counter()
        value = float(overlap(p, q))
        self.overlap += time.perf_counter() - start
        return value


@dataclass(frozen=True, slots=True)
class Distribution:
    """One position's next-token distributions of one model, cut to the common vocabulary.

    `raw` is the softmax at temperature 1 and `drawn` the distribution drawn from (None when
    greedy), both [vocabulary]; `best` is the argmax.
    """

    raw: torch.Tensor
    drawn: torch.Tensor | None
    best: int

    @classmethod
    def of(cls, logits: torch.Tensor, sampler: Sampler) -> Distribution:
        raw = logits.softmax(-1)
        if sampler.greedy:
            return cls(raw, None, int(logits.argmax()))
        return cls(raw, raw if sampler.plain else sampler.distribution(logits), -1)

    def probability(self, token: int) -> float:
        return float((self.raw if self.drawn is None else self.drawn)[token])

    def choose(self, generator: torch.Generator) -> int:
        return self.best if self.drawn is None else draw(self.drawn, generator)


@dataclass(frozen=True, slots=True)
class Decoding:
    """What the loop needs to know. `vocabulary` is the common width, `stop_ids` end the text;
    `candidates` of each model are told at every judged place."""

    sampler: Sampler
    length: DraftLength
    max_tokens: int
    stop_ids: frozenset[int]
    vocabulary: int
    generator: torch.Generator
    stopped: Callable[[], bool] = lambda: False
    candidates: int = 0


def speculate(
    target: Side, draft: Side | None, decoding: Decoding, text: TokenStream, clock: Clock
) -> Generator[Event, None, FinishReason]:
    """Decode until end of text, length or Stop: yields the events, returns the FinishReason.

    `decoding.length` decides after each drafted token whether to draft another; without a draft,
    none are. A block also ends where it would pass the length limit and behind a drafted end of
    text, since nothing behind either could be emitted.
    """
    emitted = target.emitted
    round_ = 0
    while True:
        room = decoding.max_tokens - len(emitted) - 1
        yield RoundStarted(round_, decoding.length.most(room) if draft else 0, clock.now())
        drafted: list[int] = []
        views: list[Distribution] = []
        chances: list[float] = []
        end: BlockEnd | None = None
        while draft and (end := _block_end(drafted, chances, room, decoding)) is None:
            if decoding.stopped():
                return "cancelled"
            try:
                logits = draft.run(drafted, rows=1)[0, : decoding.vocabulary]
            except ModelFailed as error:
                draft = None
                yield DraftLost(str(error), clock.now())
                end = "draft lost"
                break
            view = Distribution.of(logits, decoding.sampler)
            token = view.choose(decoding.generator)
            shown, q = text.preview([*drafted, token])[-1], view.probability(token)
            drafted.append(token)
            views.append(view)
            chances.append(q)
            yield TokenDrafted(
                round_, len(drafted) - 1, token, shown, None, q, None, None, clock.now()
            )
        if end is not None:
            yield BlockEnded(round_, len(drafted), end, clock.now())
        if decoding.stopped():
            return "cancelled"
        if target.one_row and decoding.length.extra_base(round_):
            yield PlainPass(round_, target.plain_pass(), True, clock.now())
        alone, before = target.one_row and not drafted, target.seconds
        judged = target.run(drafted, rows=len(drafted) + 1)[:, : decoding.vocabulary]
        if alone:
            yield PlainPass(round_, target.seconds - before, False, clock.now())
        kept: list[int] = []
        accepted = rejected = 0
        for event in judge(drafted, views, judged, round_, decoding, text, clock):
            match event:
                case TokenAccepted():
                    accepted += 1
                    kept.append(event.id)
                case TokenRejected():
                    rejected += 1
                case TokenCorrected() | TokenBonus():
                    kept.append(event.id)
            yield event
        target.commit(kept)
        if draft:
            draft.commit(kept)
            decoding.length.observe(chances, accepted + rejected, accepted)
        if _ended(kept, decoding):
            return "stop"
        if len(emitted) >= decoding.max_tokens:
            return "length"
        round_ += 1


def _block_end(
    drafted: Sequence[int], chances: Sequence[float], room: int, decoding: Decoding
) -> BlockEnd | None:
    """Why no token is to be drafted behind `drafted`, or None if one is."""
    if len(drafted) >= room:
        return "limit"
    if _ended(drafted, decoding):
        return "end of text"
    return decoding.length.end(chances)


def _ended(tokens: Sequence[int], decoding: Decoding) -> bool:
    return bool(tokens) and tokens[-1] in decoding.stop_ids


def judge(
    drafted: Sequence[int],
    views: Sequence[Distribution],
    logits: torch.Tensor,
    round_: int,
    decoding: Decoding,
    text: TokenStream,
    clock: Clock,
) -> Iterator[Candidates | TokenAccepted | TokenRejected | TokenCorrected | TokenBonus]:
    """Judge a block against the target's `logits`, [len(drafted) + 1, vocabulary].

    Yields the accepted tokens, then either rejected and corrected, or bonus; ends behind an
    accepted end of text. The candidates of a place come before the token that is judged there.
    """
    greedy = decoding.sampler.greedy
    for place, (token, view) in enumerate(zip(drafted, views, strict=True)):
        target = Distribution.of(logits[place], decoding.sampler)
        shared = clock.overlap_of(target.raw, view.raw)
        p, q = target.probability(token), view.probability(token)
        u = None if greedy else uniform(decoding.generator)
        accepted = token == target.best if u is None else accepts(p, q, u)
        if decoding.candidates:
            found = _candidates(target.raw, view.raw, decoding.candidates, text)
            yield Candidates(round_, place, found, clock.now())
        if accepted:
            yield TokenAccepted(
                round_, place, token, text.push(token), p, q, shared, u, clock.now()
            )
            if token in decoding.stop_ids:
                return
            continue
        shown = text.preview([token])[0]
        yield TokenRejected(round_, place, token, shown, p, q, shared, u, clock.now())
        if target.drawn is None or view.drawn is None:
            token = target.best
        else:
            token = draw(residual(target.drawn, view.drawn), decoding.generator)
        p, q = target.probability(token), view.probability(token)
        yield TokenCorrected(
            round_, place, token, text.push(token), p, q, shared, None, clock.now()
        )
        return
    target = Distribution.of(logits[len(drafted)], decoding.sampler)
    token = target.choose(decoding.generator)
    p = target.probability(token)
    yield TokenBonus(
        round_, len(drafted), token, text.push(token), p, None, None, None, clock.now()
    )


def _candidates(
    p: torch.Tensor, q: torch.Tensor, count: int, text: TokenStream
) -> tuple[tuple[str, float, float], ...]:
    """(text, p, q) of the `count` likeliest tokens of p, and of those of q that are not among them;
    p and q are [vocabulary]."""
    count = min(count, len(p))
    ids = list(dict.fromkeys([*p.topk(count).indices.tolist(), *q.topk(count).indices.tolist()]))
    chances = zip(ids, p[ids].tolist(), q[ids].tolist(), strict=True)
    return tuple((text.preview([token])[0], a, b) for token, a, b in chances)
