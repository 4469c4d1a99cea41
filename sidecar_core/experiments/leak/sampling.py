"""The leak test: does the document get into the tags past the summary?

One summary is forced, so that all taggers tag the same words, and many tag lists are sampled under
each condition:

- `attended`: the sidecar's cache holds the document;
- `masked`: the document's columns are left out, as the page does it;
- `recomputed`: left out, and all that stood behind them (instruction, suffix, chat tail, summary)
  was read again without them. Masking alone leaves an indirect path: the summary's own keys and
  values were computed with the document attended. Here it is cut, so that no tag can depend on the
  document at all: what still seems to leak is what the model knew or guessed;
- `standalone`: the same weights, given the summary afresh.

A sample leaks when a word of one of its tags stands only in the document (`grounding`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from sidecar_core.decoding.batch import BatchWriter
from sidecar_core.decoding.cache import SegmentedCache
from sidecar_core.decoding.engine import Engine, never
from sidecar_core.decoding.passes import forward
from sidecar_core.decoding.sampling import Sampler
from sidecar_core.decoding.speculative import Side
from sidecar_core.decoding.tagging import Opening, open_sidecar, open_standalone
from sidecar_core.errors import Cancelled, OutOfMemory, SidecarError
from sidecar_core.experiments.alpha.forced import check_room, prefix_cache
from sidecar_core.experiments.alpha.measure import measure
from sidecar_core.experiments.corpus import Document, Skipped
from sidecar_core.experiments.leak.report import CONDITIONS, Forced, LeakSettings, Sampled
from sidecar_core.experiments.readings import MAX_TOKENS, DocumentAlpha, Step
from sidecar_core.experiments.records import RecordStore
from sidecar_core.prompts import Prompt, clean
from sidecar_core.settings import MAX_ARTICLE_CHARS
from sidecar_core.tasks import get_task
from sidecar_core.text import whole_text

MAX_SUMMARY_TOKENS = 512


def leak_test(
    engine: Engine,
    document: Document,
    settings: LeakSettings | None = None,
    *,
    summary: str | None = None,
    records: RecordStore | None = None,
    stop: Callable[[], bool] = never,
) -> Iterator[Step | Forced | Sampled]:
    """Yields progress, then the forced summary, then samples, condition by condition.

    Without a `summary` the target's own at temperature 0 is taken (from `records`, if it is there).
    Ends early once `stop` says so. Raises SidecarError for settings out of range, and for an
    article or a summary that cannot be used.
    """
    settings = (settings or LeakSettings()).validate()
    return _leak_test(engine, document, settings, summary, records, stop)


def _leak_test(
    engine: Engine,
    document: Document,
    settings: LeakSettings,
    summary: str | None,
    records: RecordStore | None,
    stop: Callable[[], bool],
) -> Iterator[Step | Forced | Sampled]:
    try:
        prompt = engine.build_prompts(document.text, settings.run_settings()).draft
        if summary is None:
            forced = yield from own_summary(engine, document, records, stop)
        else:
            forced = _given_summary(engine, document, summary)
        task = get_task(settings.task)
        written = len(engine.prompts.plain(task.cue)) + task.max_tokens
        check_room(engine, prompt, len(forced.ids), written)
        yield forced
        yield from _sample(engine, prompt, forced, settings, stop)
    except Cancelled:
        return
    except OutOfMemory:
        engine.store.clear()
        raise


def own_summary(
    engine: Engine, document: Document, records: RecordStore | None, stop: Callable[[], bool]
) -> Generator[Step, None, Forced]:
    """Yields progress, returns the target's own summary at temperature 0."""
    for event in measure(engine, [document], (), max_tokens=MAX_TOKENS, records=records, stop=stop):
        match event:
            case Step():
                yield event
            case Skipped():
                raise SidecarError(event.why)
            case DocumentAlpha():
                ids = event.summary_ids
                return Forced(document, whole_text(engine.pair.tokenizer, ids), ids)
    raise Cancelled


def _given_summary(engine: Engine, document: Document, summary: str) -> Forced:
    if len(summary) > MAX_ARTICLE_CHARS:
        raise SidecarError(
            f"The summary has {len(summary):,} characters; the limit is {MAX_ARTICLE_CHARS:,}."
        )
    text = clean(summary)
    ids = engine.prompts.plain(text)
    if not ids or len(ids) > MAX_SUMMARY_TOKENS:
        raise SidecarError(
            f"The summary has {len(ids):,} tokens; it must have from 1 to {MAX_SUMMARY_TOKENS}."
        )
    return Forced(document, text, ids)


def _sample(
    engine: Engine,
    prompt: Prompt,
    forced: Forced,
    settings: LeakSettings,
    stop: Callable[[], bool],
) -> Iterator[Step | Sampled]:
    name, task, pair = forced.document.id, get_task(settings.task), engine.pair
    stage = "reading the article (draft)"
    prefix = yield from prefix_cache(engine, pair.draft, prompt, stage, name, stop)
    writer = BatchWriter(
        model=pair.draft,
        tokenizer=pair.tokenizer,
        task=task,
        cue=engine.prompts.plain(task.cue),
        sampler=Sampler(settings.temperature),
        vocabulary=pair.vocab_size,
        stop_ids=engine.tag_stop_ids,
    )
    openings = Openings(engine, prompt, prefix, forced, task.suffix, stop)
    for number, condition in enumerate(CONDITIONS):
        if condition not in settings.conditions:
            continue
        stage = f"writing tag lists: {condition}"
        yield Step(name, stage, 0, settings.samples, condition)
        done = 0
        seed = settings.seed * len(CONDITIONS) + number
        for ended in writer.write(openings.open(condition), settings.samples, seed):
            for sample in ended:
                done += 1
                yield Sampled(name, condition, sample)
            yield Step(name, stage, done, settings.samples, condition)
            if stop():
                raise Cancelled


class Openings:
    """Where each condition's tagger starts, for one article and one forced summary.

    `prefix` holds the columns of head, document and instruction; it is not written to.
    """

    def __init__(
        self,
        engine: Engine,
        prompt: Prompt,
        prefix: SegmentedCache,
        forced: Forced,
        suffix: str,
        stop: Callable[[], bool] = never,
    ) -> None:
        self.engine, self.prompt, self.prefix = engine, prompt, prefix
        self.forced, self.suffix_text, self.stop = forced, suffix, stop
        self.suffix = prompt.segment("suffix").ids
        model, tail = engine.pair.draft, prompt.segment("tail").ids
        self.side = Side(model, prefix.fork(), tail, prefix.length + len(self.suffix))
        self.side.emitted.extend(forced.ids)

    def open(self, condition: str) -> Opening:
        """A cache of its own for `condition`. Raises Cancelled soon after `stop` says so."""
        if condition == "standalone":
            opening = self._standalone()
        elif condition == "recomputed":
            opening = self._recomputed()
        else:
            opening = open_sidecar(
                self.side,
                self.suffix,
                document_masking=condition == "masked",
                stop_ids=self.engine.stop_ids,
            )
        self._check_stop()
        return opening

    def _check_stop(self) -> None:
        if self.stop():
            raise Cancelled

    def _standalone(self) -> Opening:
        prompt = self.engine.prompts.standalone(self.forced.text, self.suffix_text)
        opening = open_standalone(self.engine.pair.draft, prompt, lambda: 0.0)
        while True:
            self._check_stop()
            try:
                next(opening)
            except StopIteration as finished:
                return finished.value

    def _recomputed(self) -> Opening:
        """Everything at its usual position, read as if the document's columns had never been."""
        model, start = self.engine.pair.draft, self.prefix.length
        instruction = self.prompt.segment("instruction").ids
        cache = self.prefix.take("head")
        forward(
            model,
            cache,
            instruction,
            start - len(instruction),
            segment="instruction",
            rows=0,
            kind="read",
        )
        self._check_stop()
        own = cache.fork()
        forward(model, own, self.suffix, start, segment="suffix", rows=0, kind="read")
        self._check_stop()
        ids = list(self.forced.ids)
        if ids and ids[-1] in self.engine.stop_ids:
            ids.pop()
        text = [*self.prompt.segment("tail").ids, *ids]
        position = start + len(self.suffix)
        forward(model, cache, text, position, segment="summary", rows=0)
        cache.add(own, "suffix")
        return Opening(cache, position + len(text), len(text))
