"""Teacher-forced α over many articles: measured article by article, then pooled.

`measure` yields progress and, for every document in order, a `DocumentAlpha` or a `Skipped`; it may
be left at any moment, and what it did is kept (`records`). `pool` is a pure function of the
results: α over all positions of all documents, intervals over documents, paired differences, and
what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from sidecar_core.decoding.engine import Engine, never
from sidecar_core.errors import Cancelled, ModelFailed, OutOfMemory, SidecarError
from sidecar_core.events import (
    DraftLost,
    PrefillProgress,
    SummaryFinished,
    TokenAccepted,
    TokenBonus,
    TokenCorrected,
)
from sidecar_core.experiments.alpha.conditions import Condition
from sidecar_core.experiments.alpha.forced import read
from sidecar_core.experiments.corpus import Document, Skipped
from sidecar_core.experiments.readings import MAX_TOKENS, DocumentAlpha, Live, Step
from sidecar_core.experiments.records import (
    Record,
    Records,
    RecordStore,
    record_key,
)
from sidecar_core.prompts import Prompt
from sidecar_core.report import RunReport
from sidecar_core.settings import COMPARED_GAMMA, RunSettings


def measure(
    engine: Engine,
    documents: Iterable[Document],
    conditions: Sequence[Condition],
    *,
    max_tokens: int = MAX_TOKENS,
    gamma: int = COMPARED_GAMMA,
    records: RecordStore | None = None,
    stop: Callable[[], bool] = never,
) -> Iterator[Step | DocumentAlpha | Skipped]:
    """Yields steps, and one result for every document, in order; ends early once `stop` says so.

    The summary is the target's own at temperature 0, written with speculative decoding (`gamma`
    drafts a round, the draft prompted as the target is). What `records` hold is not measured again.
    An article that cannot be used is a Skipped with the reason.
    """
    records = records if records is not None else Records(None)
    settings = RunSettings(draft_prompt="identical", gamma=gamma, max_tokens=max_tokens).validate()
    for document in documents:
        try:
            prompt = engine.build_prompts(document.text, settings).target
            yield from _measure_one(engine, document, prompt, conditions, settings, records, stop)
        except Cancelled:
            return
        except SidecarError as error:
            if isinstance(error, OutOfMemory):
                engine.store.clear()
            yield Skipped(document.id, str(error))


def _measure_one(
    engine: Engine,
    document: Document,
    prompt: Prompt,
    conditions: Sequence[Condition],
    settings: RunSettings,
    records: RecordStore,
    stop: Callable[[], bool],
) -> Iterator[Step | DocumentAlpha]:
    if stop():
        raise Cancelled
    key = record_key(engine, prompt, settings.max_tokens, int(settings.gamma))
    record = records.load(key)
    if record is None:
        record = yield from _summarise(engine, document, settings, stop)
        records.save(key, record)
    keys = {condition.name: condition.key for condition in conditions}
    missing = [c for c in conditions if keys[c.name] not in record.readings]
    if missing:
        found = yield from read(
            engine, prompt, record.summary, missing, document=document.id, stop=stop
        )
        record.readings.update({keys[name]: reading for name, reading in found.items()})
        records.save(key, record)
    yield DocumentAlpha(
        document.id,
        len(prompt),
        record.summary,
        record.reason,
        record.live,
        {name: record.readings[key] for name, key in keys.items()},
    )


def _summarise(
    engine: Engine, document: Document, settings: RunSettings, stop: Callable[[], bool]
) -> Any:
    """Yields steps, returns a Record without readings."""
    report = RunReport()
    events = engine.stream(document.text, settings, stop)
    try:
        for event in events:
            report.add(event)
            match event:
                case PrefillProgress():
                    stage = f"reading the article ({event.model})"
                    yield Step(document.id, stage, event.done, event.total)
                case TokenAccepted() | TokenCorrected() | TokenBonus():
                    stage = "writing the summary"
                    yield Step(document.id, stage, report.emitted, settings.max_tokens)
                case DraftLost():
                    raise ModelFailed(event.why)  # its figures would be of no use
                case SummaryFinished():
                    break
    finally:
        events.close()
    done = report.summary
    if done is None or done.reason == "cancelled":
        raise Cancelled
    live = Live(
        int(settings.gamma),
        len(done.ids),
        done.target_passes,
        report.judged,
        report.accepted,
        sum(report.overlaps),
    )
    return Record(done.ids, done.reason, live)
