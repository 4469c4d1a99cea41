"""Teacher forcing: both models read a given summary, and are asked at every position what they
would have said.

α has a closed form there: the expected acceptance of a token drawn from the draft's distribution q
is Σ min(p, q), p being the target's (both at temperature 1). No luck is involved, and all
conditions are measured on the same tokens.

Head, document and instruction are read once by each model, and one copy of their columns serves all
conditions in turn: each has only its own columns besides, which stand behind that copy while it
reads. Rows are taken `ROWS` at a time, by the target and by the draft under every condition, and
reduced to two numbers each: what is in memory, beside a cache for each text, is each condition's
suffix, tail and summary, and a few [ROWS, vocabulary] blocks, however long the summary.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field

import torch

from sidecar_core.decoding.cache import SegmentedCache
from sidecar_core.decoding.engine import Engine, never
from sidecar_core.decoding.passes import forward
from sidecar_core.decoding.sampling import overlap
from sidecar_core.errors import Cancelled, SidecarError
from sidecar_core.experiments.alpha.conditions import Condition
from sidecar_core.experiments.readings import Reading, Step
from sidecar_core.models.pair import LoadedModel
from sidecar_core.prompts import Prompt, unrelated_prompt

ROWS = 64
"""About how many rows are taken at a time. Summaries are parted evenly, since a few rows cost
nearly as much as many."""

OWN = frozenset({"suffix", "tail", "summary"})
"""Segments that stand behind the prefix."""

Segments = str | tuple[tuple[str, int], ...]


@dataclass(slots=True)
class Reader:
    """One model behind its prefix, reading tail and summary; `position` is the tail's first.

    `cache` begins with the prefix's columns, and may be several readers' who take turns; `own`
    holds the columns that are this one's, and is not written to.
    """

    model: LoadedModel
    cache: SegmentedCache
    prefix: int
    tail: tuple[int, ...]
    position: int
    own: SegmentedCache = field(default_factory=SegmentedCache)
    forgets_suffix: bool = False
    _read: int = field(default=0, init=False)

    def rows(self, summary: Sequence[int], end: int) -> torch.Tensor:
        """Logits [rows, vocabulary] that predict the summary's tokens up to `end`, from where the
        last call ended."""
        start, self._read = self._read, end
        if start:
            return self._pass("summary", summary[start - 1 : end - 1], end - start)
        if not self.forgets_suffix:
            text = [*self.tail, *summary[: end - 1]]
            return self._pass((("tail", len(self.tail)), ("summary", end - 1)), text, end)
        first = self._pass("tail", self.tail, 1)
        self.own = self.own.take("tail")
        if end == 1:
            return first
        return torch.cat([first, self._pass("summary", summary[: end - 1], end - 1)])

    def _pass(self, segment: Segments, tokens: Sequence[int], rows: int) -> torch.Tensor:
        self.cache.rollback(self.prefix)
        if self.own.length:
            self.cache.add(self.own, *dict(self.own.segments))
        logits = forward(
            self.model, self.cache, tokens, self.position, segment=segment, rows=rows, kind="read"
        )
        self.own = self.cache.take(*OWN & dict(self.cache.segments).keys())
        self.position += len(tokens)
        return logits


def read(
    engine: Engine,
    prompt: Prompt,
    summary: Sequence[int],
    conditions: Sequence[Condition],
    *,
    document: str = "",
    stop: Callable[[], bool] = never,
) -> Generator[Step, None, dict[str, Reading]]:
    """Teacher-force `summary` behind the target's `prompt`: yields progress, returns a Reading for
    each condition by name.

    Raises SidecarError where the models have no room for the longest prompt, Cancelled soon after
    `stop` says so.
    """
    pair, width = engine.pair, engine.pair.vocab_size
    check_room(engine, prompt, len(summary), max((c.room for c in conditions), default=0))
    target = yield from _target(engine, prompt, document, stop)
    drafts = yield from _drafts(engine, prompt, conditions, len(summary), document, stop)
    overlaps: dict[str, list[float]] = {c.name: [] for c in conditions}
    agreed: dict[str, list[bool]] = {c.name: [] for c in conditions}
    for start, end in _parts(len(summary)):
        tokens = torch.as_tensor(summary[start:end], device=pair.target.device)
        p = target.rows(summary, end)[:, :width].softmax(-1)
        yield Step(document, "reading the summary (target)", end, len(summary))
        for name, reader in drafts.items():
            if stop():
                raise Cancelled
            logits = reader.rows(summary, end)[:, :width].to(p.device)
            agreed[name] += (logits.argmax(-1) == tokens).tolist()
            overlaps[name] += overlap(p, logits.softmax(-1)).tolist()
            alpha = sum(overlaps[name]) / end
            yield Step(document, "reading the summary (draft)", end, len(summary), name, alpha)
    return {n: Reading(tuple(overlaps[n]), tuple(agreed[n])) for n in drafts}


def _parts(count: int) -> Iterator[tuple[int, int]]:
    """(start, end) of even parts of at most 1.5 `ROWS` rows."""
    parts = max(1, round(count / ROWS))
    edges = [count * n // parts for n in range(parts + 1)]
    return itertools.pairwise(edges)


def check_room(engine: Engine, prompt: Prompt, summary: int, room: int) -> None:
    """SidecarError unless both models were made for that many positions."""
    limit = min(engine.pair.target.max_positions, engine.pair.draft.max_positions)
    if (needed := len(prompt) + room + summary) > limit:
        raise SidecarError(
            f"Article, suffix and summary need {needed:,} positions; the models have {limit:,}. "
            "Use a shorter article or suffix."
        )


def prefix_cache(
    engine: Engine,
    model: LoadedModel,
    prompt: Prompt,
    stage: str,
    document: str = "",
    stop: Callable[[], bool] = never,
) -> Generator[Step, None, SegmentedCache]:
    """Yields progress, returns the columns of all that stands before suffix and tail: the stored
    ones, not to be written to."""
    prefix = prompt.without("suffix", "tail")

    def told(done: int) -> Step:
        return Step(document, stage, done, len(prefix))

    return (yield from engine.store.read(model, prefix.segments, told, stop))


def _target(
    engine: Engine, prompt: Prompt, document: str, stop: Callable[[], bool]
) -> Generator[Step, None, Reader]:
    model = engine.pair.target
    stage = "reading the article (target)"
    cache = yield from prefix_cache(engine, model, prompt, stage, document, stop)
    return Reader(model, cache.fork(), cache.length, prompt.segment("tail").ids, cache.length)


def _drafts(
    engine: Engine,
    prompt: Prompt,
    conditions: Sequence[Condition],
    summary: int,
    document: str,
    stop: Callable[[], bool],
) -> Generator[Step, None, dict[str, Reader]]:
    """The draft under every condition. What several conditions see is read once."""
    model = engine.pair.draft
    shared: dict[str, tuple[Prompt, SegmentedCache, int]] = {}
    suffixes: dict[tuple[str, tuple[int, ...]], SegmentedCache] = {}
    readers = {}
    for condition in conditions:
        if stop():
            raise Cancelled
        if condition.instead not in shared:
            text, stage = prompt, "reading the article (draft)"
            if condition.instead:
                room = model.max_positions - condition.room - summary
                text = unrelated_prompt(condition.instead, engine.prompts, room)
            prefix = yield from prefix_cache(engine, model, text, stage, document, stop)
            shared[condition.instead] = (text, prefix.fork(), prefix.length)
        text, cache, length = shared[condition.instead]
        suffix = condition.suffix if condition.seen_by != "nobody" else ()
        key = (condition.instead, suffix)
        if key not in suffixes:
            suffixes[key] = SegmentedCache()
            if suffix:
                cache.rollback(length)
                forward(model, cache, suffix, length, segment="suffix", rows=0, kind="read")
                suffixes[key] = cache.take("suffix")
        readers[condition.name] = Reader(
            model,
            cache,
            length,
            text.segment("tail").ids,
            length + condition.room,
            suffixes[key],
            condition.seen_by == "tail",
        )
    return readers
