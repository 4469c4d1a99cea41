"""Where the suffix may stand if it is to be masked: the options side by side.

| placement | while summarising | while tagging |
|---|---|---|
| `natural` | masked, its positions kept free | read in its own slot behind the instruction |
| `rebased` | masked, the gap closed | read in that slot, which the summary's positions overlap |
| `deferred` | not there at all | read behind the summary |
| `folded` | not there at all | words of its own, one pass with the cue |

Their α is that of `masked`, `rebased` and `identical`; the tags are those that the draft writes at
temperature 0 behind the target's summary. A suffix that comes behind the summary need not speak of
what is to come: `folded` goes on as the writer of the summary would ("And here are …", `FOLDED`),
in the pass that reads the cue, so that it costs no pass of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from sidecar_core.decoding.engine import Engine, never
from sidecar_core.decoding.sampling import Sampler
from sidecar_core.decoding.speculative import Side
from sidecar_core.decoding.tagging import (
    Opening,
    TagWriter,
    complete_summary,
    open_deferred,
    open_sidecar,
)
from sidecar_core.errors import Cancelled
from sidecar_core.events import PrefillProgress, TagsFinished
from sidecar_core.experiments.alpha.conditions import Condition, choose
from sidecar_core.experiments.alpha.forced import prefix_cache
from sidecar_core.experiments.alpha.pooling import BASELINE, Table
from sidecar_core.experiments.readings import DocumentAlpha, Step
from sidecar_core.grounding import ground
from sidecar_core.report import ratio
from sidecar_core.settings import RunSettings
from sidecar_core.tasks import SidecarTask
from sidecar_core.text import TokenStream, whole_text

PLACEMENTS = {
    "natural": "masked",
    "rebased": "rebased",
    "deferred": "identical",
    "folded": "identical",
}
"""Placement → the condition that is its α."""

FOLDED = {"hashtags": "\n\nAnd here are 3-5 topical hashtags for the summary, as a JSON array:"}
"""By task: what stands behind the summary in place of a suffix, in front of the opening of the
list. Tasks without an entry use their own suffix."""


@dataclass(frozen=True, slots=True)
class PlacedTags:
    """What one document's summary was tagged with under each placement."""

    summary: str
    tags: Mapping[str, tuple[str, ...]]


def placement_conditions(engine: Engine, task: SidecarTask) -> tuple[Condition, ...]:
    """What `alpha.measure` has to measure for the comparison."""
    return choose(["identical", "masked", "rebased"], engine, task)


def tag_everywhere(
    engine: Engine,
    article: str,
    result: DocumentAlpha,
    task: SidecarTask,
    *,
    document_masking: bool = True,
    stop: Callable[[], bool] = never,
) -> Generator[Step, None, PlacedTags]:
    """Yields progress, returns the tags of one measured article under every placement.

    Raises SidecarError as a run does, Cancelled soon after `stop` says so.
    """
    settings = RunSettings(draft_prompt="identical", max_tokens=len(result.summary_ids))
    prompt = engine.build_prompts(article, settings).target
    suffix = engine.prompts.plain(task.suffix)
    model = engine.pair.draft
    stage = "reading the article (draft)"
    prefix = yield from prefix_cache(engine, model, prompt, stage, result.id, stop)
    tags: dict[str, tuple[str, ...]] = {}
    for placement in PLACEMENTS:
        room = len(suffix) if placement == "natural" else 0
        side = Side(model, prefix.fork(), prompt.segment("tail").ids, prefix.length + room)
        side.emitted.extend(result.summary_ids)
        cue = engine.prompts.plain(task.cue)
        if placement == "folded":
            computed = complete_summary(side, engine.stop_ids)
            kept = [n for n, _ in side.cache.segments if not (document_masking and n == "document")]
            opening = Opening(side.cache.take(*kept), side.next_position, computed)
            cue = engine.prompts.plain(folded_cue(task))
        else:
            compose = open_deferred if placement == "deferred" else open_sidecar
            opening = compose(
                side, suffix, document_masking=document_masking, stop_ids=engine.stop_ids
            )
        for done, event in enumerate(_write(engine, task, opening, cue), 1):
            if isinstance(event, TagsFinished):
                tags[placement] = event.tags
            elif stop():
                raise Cancelled
            else:
                yield Step(result.id, f"writing tags: {placement}", done, task.max_tokens)
    text = whole_text(engine.pair.tokenizer, result.summary_ids)
    return PlacedTags(text, tags)


def folded_cue(task: SidecarTask) -> str:
    """What the first tagging pass reads under `folded`: the request and the opening of the list.

    >>> from sidecar_core.tasks import HASHTAGS
    >>> folded_cue(HASHTAGS)[-16:]
    ' JSON array: ["#'
    """
    if task.name not in FOLDED:
        return task.suffix + task.cue
    return FOLDED[task.name] + " " + task.cue.partition(": ")[2]


def pool_placement(
    results: Sequence[DocumentAlpha],
    articles: Sequence[str],
    tagged: Sequence[PlacedTags],
) -> dict[str, Any]:
    """{placements: {name: {alpha, ci95, cost, cost_ci95, …}}, per_document, documents}.

    cost = identical - α. Tags are counted by where they stand (`grounding`): in the summary, with a
    word only in the document, in neither; `same_as_natural` is the mean overlap of the two sets of
    tags, intersection by union.
    """
    if not results:
        return {"documents": 0, "placements": {}, "per_document": []}
    table = Table(results)
    placements = {}
    for name, condition in PLACEMENTS.items():
        cost = table.difference(BASELINE, condition)
        found = {"summary": 0, "document": 0, "neither": 0}
        for article, one in zip(articles, tagged, strict=True):
            for tag in one.tags[name]:
                found[ground(tag, one.summary, article).place] += 1
        total = sum(found.values())
        placements[name] = {
            "alpha": table.alpha(condition),
            "ci95": table.interval(condition),
            "cost": cost["difference"],
            "cost_ci95": cost["ci95"],
            "tags": total,
            "tags_per_summary": total / len(results),
            "without_tags": sum(not one.tags[name] for one in tagged),
            "in_summary": ratio(found["summary"], total),
            "only_in_document": ratio(found["document"], total),
            "in_neither": ratio(found["neither"], total),
            "same_as_natural": sum(_alike(one.tags[name], one.tags["natural"]) for one in tagged)
            / len(tagged),
        }
    return {
        "documents": len(results),
        "placements": placements,
        "per_document": [
            {"id": result.id, "tags": {name: list(tags) for name, tags in one.tags.items()}}
            for result, one in zip(results, tagged, strict=True)
        ],
    }


def _write(
    engine: Engine, task: SidecarTask, opening: Opening, cue: tuple[int, ...]
) -> Iterator[Any]:
    pair = engine.pair

    def opened() -> Generator[PrefillProgress, None, Opening]:
        yield from ()
        return opening

    writer = TagWriter(
        "sidecar",
        pair.draft,
        task,
        cue,
        Sampler(),
        torch.Generator(pair.draft.device),
        pair.vocab_size,
        engine.tag_stop_ids,
        time.perf_counter,
    )
    return writer.write(opened(), TokenStream(pair.tokenizer))


def _alike(one: Sequence[str], other: Sequence[str]) -> float:
    union = set(one) | set(other)
    return len(set(one) & set(other)) / len(union) if union else 1.0
