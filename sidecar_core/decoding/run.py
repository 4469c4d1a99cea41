"""One run: prefill, draft-verify loop, taggers, as one generator of events."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch

from sidecar_core.decoding.cache import SegmentedCache
from sidecar_core.decoding.draft_length import Auto, DraftLength, Fixed
from sidecar_core.decoding.passes import forward, is_out_of_memory
from sidecar_core.decoding.prefix import PrefixStore
from sidecar_core.decoding.sampling import Sampler
from sidecar_core.decoding.speculative import Clock, Decoding, Side, speculate
from sidecar_core.decoding.tagging import (
    Opening,
    TagWriter,
    in_turn,
    open_deferred,
    open_sidecar,
    open_standalone,
)
from sidecar_core.errors import Cancelled, ModelFailed, OutOfMemory, SidecarError
from sidecar_core.events import (
    DraftLost,
    Event,
    FinishReason,
    PhaseChanged,
    PrefillProgress,
    RunFailed,
    RunFinished,
    RunStarted,
    SummaryFinished,
    Tagger,
    TagsSkipped,
)
from sidecar_core.models.pair import LoadedModel, Pair
from sidecar_core.prompts import Prompt, PromptBuilder
from sidecar_core.settings import RunSettings
from sidecar_core.tasks import SidecarTask
from sidecar_core.text import TokenStream, whole_text

NO_SIDECAR = (
    "With an unrelated draft prompt the draft never read the article, so there is nothing to tag."
)

CANDIDATES = 5
"""Of each model, at every judged place: what a reader takes in at a glance."""

DRAFT_LOST = "The draft failed during the summary; its KV cache is lost."


@dataclass(frozen=True, slots=True)
class Prompts:
    """Both prompts of a run. The target's is the draft's without its suffix."""

    target: Prompt
    draft: Prompt
    suffix: tuple[int, ...]


@dataclass(slots=True)
class Spent:
    """Seconds by stage, filled while a run goes on."""

    stages: dict[str, float] = field(default_factory=dict)
    suspended: float = 0.0
    """Time in which the consumer of the events, not the engine, was at work."""

    def add(self, stage: str, seconds: float) -> None:
        self.stages[stage] = self.stages.get(stage, 0.0) + seconds


@dataclass(frozen=True, slots=True)
class Tools:
    """What the runs of one engine share (see `Engine`)."""

    pair: Pair
    prompts: PromptBuilder
    store: PrefixStore
    stop_ids: frozenset[int]
    tag_stop_ids: frozenset[int]


class Run:
    """State of one run."""

    def __init__(
        self,
        tools: Tools,
        settings: RunSettings,
        prompts: Prompts,
        tasks: Sequence[SidecarTask],
        stop: Callable[[], bool],
    ) -> None:
        self.tools, self.pair = tools, tools.pair
        self.settings, self.prompts, self.tasks, self.stop = settings, prompts, tasks, stop
        self.clock = Clock()
        self.spent = Spent()
        self.sampler = Sampler(settings.temperature, settings.top_k, settings.top_p)
        self.draft_lost = False

    def events(self) -> Generator[Event, None, None]:
        inner = self._guarded()
        try:
            for event in inner:
                if isinstance(event, DraftLost):
                    self.draft_lost = True
                    self.tools.store.forget(self.pair.draft, _prefix(self.prompts.draft).segments)
                handed_over = time.perf_counter()
                yield event
                self.spent.suspended += time.perf_counter() - handed_over
        finally:
            inner.close()

    def _guarded(self) -> Generator[Event, None, None]:
        reason: FinishReason = "cancelled"
        try:
            yield self._started()
            reason = yield from self._stages()
        except Cancelled:
            pass
        except Exception as error:
            failure = self._let_go(error)
            if isinstance(failure, SidecarError):
                yield RunFailed(str(failure), self.clock.now())
            if failure is error:
                raise
            raise failure from error
        yield PhaseChanged("done", self.clock.now())
        self.spent.add("total", self.clock.now() - self.spent.suspended)
        yield RunFinished(reason, dict(self.spent.stages), self.clock.now())

    def _let_go(self, error: Exception) -> Exception:
        """Forget what this run kept, or everything where memory ran out; gives the error back, in
        words if it was about memory."""
        store, pair, prompts = self.tools.store, self.pair, self.prompts
        if is_out_of_memory(error):
            error = OutOfMemory(
                "Out of memory; use a shorter article, fewer tokens or a smaller pair."
            )
        if isinstance(error, OutOfMemory):
            store.clear()
        for model, prompt in ((pair.target, prompts.target), (pair.draft, prompts.draft)):
            store.forget(model, _prefix(prompt).segments)
        return error

    def _started(self) -> RunStarted:
        store, pair, prompts = self.tools.store, self.pair, self.prompts
        reused = tuple(
            cache.length if (cache := store.get(model, _prefix(prompt).segments)) else 0
            for model, prompt in ((pair.target, prompts.target), (pair.draft, prompts.draft))
        )
        return RunStarted(
            pair=pair.name,
            precision=pair.target.precision,
            device=str(pair.target.device),
            settings=self.settings.as_dict(),
            segments=prompts.draft.lengths,
            target_tokens=len(prompts.target),
            draft_tokens=len(prompts.draft),
            suffix_tokens=len(prompts.suffix),
            reused_tokens=(reused[0], reused[1]),
            note=pair.note,
        )

    def _stages(self) -> Generator[Event, None, FinishReason]:
        """Prefill, summary, tagging: yields their events, returns the FinishReason."""
        yield PhaseChanged("prefill", self.clock.now())
        target_cache = yield from self._prefill("target", self.pair.target, self.prompts.target)
        draft = yield from self._draft()
        target = Side(
            self.pair.target,
            target_cache,
            self.prompts.target.segment("tail").ids,
            target_cache.length,
        )

        yield PhaseChanged("summary", self.clock.now())
        summary = yield from self._summarise(target, draft)
        yield summary
        if summary.reason == "cancelled":
            return "cancelled"

        start = self.clock.now() - self.spent.suspended
        yield PhaseChanged("tagging", self.clock.now())
        self._check_stop()  # the first tagger makes two passes before it yields anything
        for event in self._tag(None if self.draft_lost else draft, summary.text):
            yield event
            self._check_stop()
        self.spent.add("tagging", self.clock.now() - self.spent.suspended - start)
        return summary.reason

    def _check_stop(self) -> None:
        if self.stop():
            raise Cancelled

    def _prefill(
        self, role: Literal["target", "draft"], model: LoadedModel, prompt: Prompt
    ) -> Generator[Event, None, SegmentedCache]:
        """Yields progress, returns a cache of its own that holds the prompt's prefix."""
        start = self.clock.now() - self.spent.suspended
        prefix = _prefix(prompt)

        def told(done: int) -> PrefillProgress:
            return PrefillProgress(role, done, len(prefix), self.clock.now())

        cache = yield from self.tools.store.read(model, prefix.segments, told, self.stop)
        self.spent.add(f"prefill_{role}", self.clock.now() - self.spent.suspended - start)
        return cache.fork()

    def _draft(self) -> Generator[Event, None, Side | None]:
        """Yields progress, returns the draft behind its prompt, or None where it failed."""
        try:
            cache = yield from self._prefill("draft", self.pair.draft, self.prompts.draft)
            return self._draft_side(cache)
        except ModelFailed as error:
            yield DraftLost(str(error), self.clock.now())
            return None

    def _draft_side(self, cache: SegmentedCache) -> Side:
        """The draft behind its prefix: with the suffix's columns if it may see them, and with the
        suffix's positions left free unless rebased."""
        settings, model = self.settings, self.pair.draft
        start = cache.length
        tail = start
        if settings.draft_prompt == "compound":
            if not settings.suffix_masking:
                forward(
                    model, cache, self.prompts.suffix, start, segment="suffix", rows=0, kind="read"
                )
            if settings.positions == "natural":
                tail += len(self.prompts.suffix)
        return Side(model, cache, self.prompts.draft.segment("tail").ids, tail)

    def _summarise(
        self, target: Side, draft: Side | None
    ) -> Generator[Event, None, SummaryFinished]:
        """Yields the rounds' events, returns the SummaryFinished."""
        settings, clock, spent = self.settings, self.clock, self.spent
        text = TokenStream(self.pair.tokenizer)
        decoding = Decoding(
            sampler=self.sampler,
            length=self._length(),
            max_tokens=settings.max_tokens,
            stop_ids=self.tools.stop_ids,
            vocabulary=self.pair.vocab_size,
            generator=self._generator(0),
            stopped=self.stop,
            candidates=CANDIDATES,
        )
        start = clock.now() - spent.suspended
        reason = yield from speculate(target, draft, decoding, text, clock)
        seconds = clock.now() - spent.suspended - start
        drafting = draft.seconds if draft else 0.0
        spent.add("target_passes", target.seconds)
        spent.add("draft_passes", drafting)
        spent.add("overlap", clock.overlap)
        spent.add("extra_passes", target.extra_seconds)
        spent.add(
            "engine", seconds - target.seconds - target.extra_seconds - drafting - clock.overlap
        )
        ids = tuple(target.emitted)
        whole = whole_text(self.pair.tokenizer, ids)
        passes = draft.passes if draft else 0
        return SummaryFinished(whole, ids, reason, target.passes, passes, clock.now())

    def _length(self) -> DraftLength:
        if self.settings.gamma == "auto":
            return Auto(self.pair.target.calibration, self.pair.draft.calibration)
        return Fixed(self.settings.gamma)

    def _tag(self, draft: Side | None, summary: str) -> Iterator[Event]:
        """Both taggers of every task in turn; none runs for an unrelated draft prompt, and no
        sidecar without the draft that read the article."""
        if self.settings.draft_prompt == "unrelated":
            for task in self.tasks:
                yield TagsSkipped("sidecar", NO_SIDECAR, task.name)
                yield TagsSkipped("standalone", NO_SIDECAR, task.name)
            return
        yield from in_turn([w for task in self.tasks for w in self._writers(draft, summary, task)])

    def _writers(
        self, draft: Side | None, summary: str, task: SidecarTask
    ) -> list[Iterator[Event]]:
        """Sidecar and standalone of one task."""
        settings, prompts, stop_ids = self.settings, self.tools.prompts, self.tools.stop_ids
        model = self.pair.draft

        def sidecar(draft: Side) -> Generator[PrefillProgress, None, Opening]:
            yield from ()
            masking, suffix = settings.document_masking, prompts.plain(task.suffix)
            if settings.draft_prompt == "identical":
                return open_deferred(draft, suffix, document_masking=masking, stop_ids=stop_ids)
            return open_sidecar(
                draft,
                suffix,
                document_masking=masking,
                stop_ids=stop_ids,
                further=task is not self.tasks[0],
            )

        def writer(
            name: Tagger, seed: int, opening: Generator[PrefillProgress, None, Opening]
        ) -> Iterator[Event]:
            writing = TagWriter(
                name,
                model,
                task,
                prompts.plain(task.cue),
                self.sampler,
                self._generator(seed),
                self.pair.vocab_size,
                self.tools.tag_stop_ids,
                self.clock.now,
                self._check_stop,
            ).write(opening, TokenStream(self.pair.tokenizer))
            return _or_skipped(name, task, writing)

        standalone = open_standalone(
            model, prompts.standalone(summary, task.suffix), self.clock.now
        )
        lost: Iterator[Event] = iter([TagsSkipped("sidecar", DRAFT_LOST, task.name)])
        return [
            writer("sidecar", 1, sidecar(draft)) if draft else lost,
            writer("standalone", 2, standalone),
        ]

    def _generator(self, stream: int) -> torch.Generator:
        """A source of randomness: 0 for the summary, 1 for sidecars, 2 for standalone taggers."""
        generator = torch.Generator(self.pair.target.device)
        return generator.manual_seed(self.settings.seed * 3 + stream)


def _or_skipped(tagger: Tagger, task: SidecarTask, writing: Iterator[Event]) -> Iterator[Event]:
    """A tagger whose model fails is skipped: the summary stays, and so does the other tagger."""
    try:
        yield from writing
    except ModelFailed as error:
        yield TagsSkipped(tagger, str(error), task.name)


def _prefix(prompt: Prompt) -> Prompt:
    """What is read before the suffix and the tail: the part that no setting changes."""
    return prompt.without("suffix", "tail")
