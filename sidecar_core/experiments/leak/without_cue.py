"""What the cue is for: what the draft writes behind the summary when nothing opens a tag list.

The tagger starts as the sidecar does, but its first token is left to the draft: the last token of
the summary is read again with the suffix visible, and what follows is one greedy text for each
article. It ends at once, opens a list of hashtags, or goes on (with the summary, or talk).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from sidecar_core.decoding.batch import BatchWriter
from sidecar_core.decoding.engine import Engine, never
from sidecar_core.decoding.sampling import Sampler
from sidecar_core.errors import Cancelled, SidecarError
from sidecar_core.experiments.alpha.forced import prefix_cache
from sidecar_core.experiments.commands import skipped_as_list
from sidecar_core.experiments.corpus import Document, Skipped
from sidecar_core.experiments.leak.sampling import Openings, own_summary
from sidecar_core.experiments.readings import Step
from sidecar_core.experiments.records import RecordStore
from sidecar_core.experiments.stats import clustered
from sidecar_core.report import ratio
from sidecar_core.settings import RunSettings
from sidecar_core.tasks import HASHTAGS

CONDITIONS = ("attended", "masked")
"""Whether the sidecar attends to the document, as in the leak test."""

Outcome = Literal["ends", "tags", "goes on"]
OPENINGS = (
    r"\W*(?:here are (?:\S+ ){0,6})?(?:hash)?tags\b"  # "Hashtags:", "Here are 3-5 hashtags"
    r"|\s*(?:```\w*\s*)?\["  # a JSON array, perhaps in a block of code
    r"|\s*(?:[-*]\s*)?#\w"  # "#sea"
)
"""How a list of hashtags begins."""

OUTCOMES: tuple[Outcome, ...] = ("ends", "tags", "goes on")


@dataclass(frozen=True, slots=True)
class Continued:
    """What the draft wrote behind one summary, without a cue."""

    document: str
    condition: str
    text: str

    @property
    def outcome(self) -> Outcome:
        return outcome(self.text)


def outcome(text: str) -> Outcome:
    """What a continuation is, by how it opens.

    >>> outcome(""), outcome('Hashtags: ["#sea"'), outcome("- A third point.")
    ('ends', 'tags', 'goes on')
    """
    if not text.strip():
        return "ends"
    opening = (
        r"\W*(?:here are (?:\S+ ){0,6})?(?:hash)?tags\b|\s*(?:```\w*\s*)?\[|\s*(?:[-*]\s*)?#\w"
    )
    return "tags" if re.match(opening, text, re.IGNORECASE) else "goes on"


def without_cue(
    engine: Engine,
    documents: Iterable[Document],
    *,
    records: RecordStore | None = None,
    stop: Callable[[], bool] = never,
) -> Iterator[Step | Continued | Skipped]:
    """Yields progress and, for every article, a Continued for each condition or a Skipped."""
    for document in documents:
        try:
            yield from _of_one(engine, document, records, stop)
        except Cancelled:
            return
        except SidecarError as error:
            yield Skipped(document.id, str(error))


def _of_one(
    engine: Engine, document: Document, records: RecordStore | None, stop: Callable[[], bool]
) -> Iterator[Step | Continued]:
    pair = engine.pair
    prompt = engine.build_prompts(document.text, RunSettings(task=HASHTAGS.name)).draft
    forced = yield from own_summary(engine, document, records, stop)
    ids = [token for token in forced.ids if token not in engine.stop_ids]
    if len(ids) < 2:
        raise SidecarError("its summary is too short to continue")
    prefix = yield from prefix_cache(
        engine, pair.draft, prompt, "reading the article (draft)", document.id, stop
    )
    openings = Openings(
        engine, prompt, prefix, replace(forced, ids=tuple(ids[:-1])), HASHTAGS.suffix, stop
    )
    writer = BatchWriter(
        model=pair.draft,
        tokenizer=pair.tokenizer,
        task=replace(HASHTAGS, is_done=lambda raw: False, max_tokens=24),
        cue=(ids[-1],),
        sampler=Sampler(),
        vocabulary=pair.vocab_size,
        stop_ids=engine.stop_ids,
    )
    for condition in CONDITIONS:
        yield Step(document.id, f"continuing without a cue: {condition}", 0, 1, condition)
        for ended in writer.write(openings.open(condition), 1, 0):
            for sample in ended:
                yield Continued(document.id, condition, sample.text)


def pool_continued(found: Iterable[Continued], skipped: Iterable[Skipped] = ()) -> dict[str, Any]:
    """{conditions: {name: {articles, ends, tags, goes_on, needs_cue, ci95}}, per_document}.

    `needs_cue` is the share of articles in which no tag list was opened.
    """
    found = list(found)
    conditions = {}
    for name in CONDITIONS:
        outcomes = [one.outcome for one in found if one.condition == name]
        missing = [int(each != "tags") for each in outcomes]
        conditions[name] = {
            "articles": len(outcomes),
            **{each.replace(" ", "_"): outcomes.count(each) for each in OUTCOMES},
            "needs_cue": ratio(sum(missing), len(missing)),
            "ci95": clustered(missing, [1] * len(missing)),
        }
    return {
        "conditions": conditions,
        "per_document": [
            {"id": c.document, "condition": c.condition, "outcome": c.outcome, "text": c.text}
            for c in found
        ],
        "skipped": skipped_as_list(skipped),
    }
