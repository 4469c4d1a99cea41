"""The two taggers: the sidecar on the draft's cache, the standalone on the summary alone.

Both are the draft model decoding behind a forced cue; they differ in the columns they attend to.
The sidecar's cache is composed when the summary is done. Its suffix, if the summary did not read
it, is computed only now, in its own slot right behind the instruction (or, where the draft prompt
never had one, behind the summary): requests that want no tags pay nothing for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

import torch

from sidecar_core.decoding.cache import SegmentedCache
from sidecar_core.decoding.passes import forward
from sidecar_core.decoding.prefix import prefill
from sidecar_core.decoding.sampling import Sampler
from sidecar_core.decoding.speculative import Side
from sidecar_core.events import Event, PrefillProgress, Tagger, TagsFinished, TagText
from sidecar_core.models.pair import LoadedModel
from sidecar_core.prompts import Prompt
from sidecar_core.tasks import SidecarTask
from sidecar_core.text import TokenStream

PREFIX = ("head", "document", "instruction")


@dataclass(frozen=True, slots=True)
class Opening:
    """Where a tagger starts: the columns it attends to, the position of the cue's first token,
    and how many tokens were computed for it so far."""

    cache: SegmentedCache
    position: int
    computed: int


def complete_summary(draft: Side, stop_ids: frozenset[int]) -> int:
    """Give the draft's cache every token of the summary but the end of text; how many it lacked."""
    if draft.emitted and draft.emitted[-1] in stop_ids:
        draft.emitted.pop()
    missing = len(draft.tail) + len(draft.emitted) - draft.fed
    if missing > 0:
        draft.run((), rows=0)
    elif missing < 0:
        draft.cache.rollback(draft.base + len(draft.tail) + len(draft.emitted))
    return max(missing, 0)


def open_sidecar(
    draft: Side,
    suffix: Sequence[int],
    *,
    document_masking: bool,
    stop_ids: frozenset[int],
    further: bool = False,
) -> Opening:
    """Compose the sidecar's cache from the draft's (whose summary is done).

    A draft that read the suffix has its columns already. One with the document in its cache but
    not the suffix gets it in its own slot, with the positions left free for it if they were: the
    suffix attends to the prefix only, as if it had been read there. `deferred` placement is
    `open_deferred`. The suffix of a `further` task is another than the one in the draft's prompt:
    it takes that one's place.
    """
    computed = complete_summary(draft, stop_ids)
    cache = _without_document(draft.cache, document_masking)
    if further or "suffix" not in dict(cache.segments):
        own = draft.cache.take(*PREFIX)
        forward(draft.model, own, suffix, own.length, segment="suffix", rows=0, kind="read")
        cache = cache.take(*(name for name, _ in cache.segments if name != "suffix"))
        cache.add(own, "suffix")
    return Opening(cache, draft.next_position, computed + len(suffix))


def open_deferred(
    draft: Side, suffix: Sequence[int], *, document_masking: bool, stop_ids: frozenset[int]
) -> Opening:
    """The same for a draft prompt without a suffix: it is read behind the summary."""
    computed = complete_summary(draft, stop_ids)
    position = draft.next_position
    cache = draft.cache.fork()
    forward(draft.model, cache, suffix, position, segment="suffix", rows=0, kind="read")
    if document_masking:
        cache = _without_document(cache, True)
    return Opening(cache, position + len(suffix), computed + len(suffix))


def _without_document(cache: SegmentedCache, document_masking: bool) -> SegmentedCache:
    names = dict(cache.segments)
    return cache.take(*(n for n in names if not (document_masking and n == "document")))


def open_standalone(
    model: LoadedModel, prompt: Prompt, now: Callable[[], float]
) -> Generator[PrefillProgress, None, Opening]:
    """Prefill the standalone tagger's own prompt; yields progress, returns its Opening."""
    cache = SegmentedCache()
    for done in prefill(model, cache, prompt.segments, 0):
        yield PrefillProgress("standalone", done, len(prompt), now())
    return Opening(cache, len(prompt), len(prompt))


@dataclass(frozen=True, slots=True)
class TagWriter:
    """Writes one tagger's tags: everything but the columns, so the same for both taggers."""

    tagger: Tagger
    model: LoadedModel
    task: SidecarTask
    cue: tuple[int, ...]
    sampler: Sampler
    generator: torch.Generator
    vocabulary: int
    stop_ids: frozenset[int]
    now: Callable[[], float]
    check_stop: Callable[[], None] = lambda: None

    def write(
        self, opening: Generator[PrefillProgress, None, Opening], text: TokenStream
    ) -> Iterator[Event]:
        """Yields the opening's progress, TagText per token, at last TagsFinished. `check_stop` is
        asked behind the opening, whose passes may yield nothing, and may raise.

        `opening` is run first and returns an Opening; its time counts as this tagger's. Time in
        which the generator waits to be resumed does not.
        """
        spent, start = 0.0, time.perf_counter()
        while True:
            try:
                progress = next(opening)
            except StopIteration as finished:
                opened = finished.value
                break
            spent += time.perf_counter() - start
            yield progress
            start = time.perf_counter()

        self.check_stop()
        cache, position, tokens, raw = opened.cache, opened.position, self.cue, ""
        segment = "cue"
        for _ in range(self.task.max_tokens):
            logits = forward(self.model, cache, tokens, position, segment=segment)
            position += len(tokens)
            token = self.sampler.choose(logits[0, : self.vocabulary], self.generator)
            if token in self.stop_ids:
                break
            piece = text.push(token)
            raw += piece
            spent += time.perf_counter() - start
            yield TagText(self.tagger, token, piece, self.now(), self.task.name)
            start = time.perf_counter()
            if self.task.is_done(raw):
                break
            tokens, segment = (token,), "tags"
        raw += (rest := text.flush())
        if rest:
            yield TagText(self.tagger, -1, rest, self.now(), self.task.name)
        spent += time.perf_counter() - start
        yield TagsFinished(
            self.tagger,
            raw,
            self.task.parse(raw),
            self.task.cue,
            cache.length,
            cache.nbytes,
            opened.computed + len(self.cue),
            spent,
            self.task.name,
        )


def in_turn(writers: Sequence[Iterator[Event]]) -> Iterator[Event]:
    """One event of each in turn, so that both columns grow together."""
    waiting = list(writers)
    while waiting:
        for writer in list(waiting):
            try:
                yield next(writer)
            except StopIteration:
                waiting.remove(writer)
