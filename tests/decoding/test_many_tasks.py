"""Several sidecars on one summary: each writes what it would write alone."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from sidecar_core.decoding.cache import SegmentedCache
from sidecar_core.decoding.engine import Engine
from sidecar_core.decoding.passes import forward
from sidecar_core.decoding.speculative import Side
from sidecar_core.decoding.tagging import open_sidecar
from sidecar_core.errors import SidecarError
from sidecar_core.events import SummaryFinished, TagsFinished, TagsSkipped, from_json, to_json
from sidecar_core.recording import read_recording, record, write_recording
from sidecar_core.report import RunReport
from sidecar_core.settings import RunSettings
from sidecar_core.tasks import CATEGORY, HASHTAGS, HEADLINE, SidecarTask, free_task, task_of
from tests.tiny import tiny_model
from tests.tiny_pair import tiny_engine

ARTICLE = "The council voted on Tuesday to replace the boilers of the old quarter."
TASKS = [HASHTAGS, HEADLINE, CATEGORY]

MODES = [
    {"positions": "rebased"},
    {"positions": "rebased", "document_masking": False},
    {"positions": "rebased", "temperature": 0.8},
    {"draft_prompt": "identical"},
    {"draft_prompt": "identical", "document_masking": False},
]
"""Where the draft's summary does not depend on the length of the suffix in its prompt."""


@pytest.fixture(scope="module")
def engine() -> Engine:
    return tiny_engine()


def settings(**changes) -> RunSettings:
    return dataclasses.replace(RunSettings(max_tokens=20), **changes)


def lists(engine: Engine, tasks: list[SidecarTask], run: RunSettings) -> dict:
    """(task, tagger) → text, results, columns attended to."""
    return {
        (e.task, e.tagger): (e.text, e.tags, e.kv_tokens, e.kv_bytes)
        for e in engine.stream(ARTICLE, run, tasks=tasks)
        if isinstance(e, TagsFinished)
    }


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_tasks_in_one_run_write_what_each_writes_alone(engine: Engine, mode: dict):
    together = lists(engine, TASKS, settings(**mode))
    alone = {}
    for task in TASKS:
        alone |= lists(engine, [task], settings(**mode))
    assert together == alone
    assert len({text for text, *_ in together.values()}) > 3


@pytest.mark.parametrize("mode", [{}, {"suffix_masking": False}], ids=str)
def test_the_first_task_is_that_of_the_draft_prompt(engine: Engine, mode: dict):
    together = lists(engine, TASKS, settings(**mode))
    assert together.items() >= lists(engine, [HASHTAGS], settings(**mode)).items()


@pytest.mark.parametrize("document_masking", [True, False])
def test_a_further_suffix_takes_the_place_of_the_one_that_was_read(document_masking: bool):
    model, first, further = tiny_model(0), (7, 8, 9), (11, 12, 13, 14)

    def opened(*seen: int) -> SegmentedCache:
        cache = SegmentedCache()
        for name, ids in (("head", (1, 2)), ("document", (3, 4, 5)), ("instruction", (6,))):
            forward(model, cache, ids, cache.length, segment=name, rows=0)
        if seen:
            forward(model, cache, seen, 6, segment="suffix", rows=0)
        side = Side(model, cache, (20,), 9)
        side.emitted.extend((21, 22))
        return open_sidecar(
            side,
            further,
            document_masking=document_masking,
            stop_ids=frozenset(),
            further=bool(seen),
        ).cache

    behind, alone = opened(*first), opened()
    assert sorted(behind.segments) == sorted(alone.segments)
    one, other = (cache.take("suffix").layers[-1].keys for cache in (behind, alone))
    assert torch.allclose(one, other, atol=1e-5)


def test_a_run_in_a_users_own_words_can_be_recorded_and_read_back(engine: Engine):
    task = free_task("Then name the town.", "Town:")
    recording = record(list(engine.stream(ARTICLE, settings(), tasks=[task])))
    again = read_recording(write_recording(recording))
    assert again.settings.task_suffix == "Then name the town."
    assert task_of(again.settings) == task


def test_the_summary_is_the_same_however_many_tasks_there_are(engine: Engine):
    one, many = (
        next(
            e for e in engine.stream(ARTICLE, settings(), tasks=t) if isinstance(e, SummaryFinished)
        )
        for t in ([HASHTAGS], TASKS)
    )
    assert (one.ids, one.target_passes) == (many.ids, many.target_passes)


def test_a_report_keeps_tasks_apart(engine: Engine):
    events = list(engine.stream(ARTICLE, settings(), tasks=TASKS))
    report = RunReport.of(events)
    assert list(report.tasks) == ["hashtags", "headline", "category"]
    result = report.as_dict()
    assert result["settings"]["task"] == "hashtags"
    assert result["sidecar"] == result["tasks"]["hashtags"]["sidecar"]
    finished = {(e.task, e.tagger): e.text for e in events if isinstance(e, TagsFinished)}
    assert {
        (task, tagger): found["text"]
        for task, both in result["tasks"].items()
        for tagger, found in both.items()
    } == finished
    assert RunReport.of(from_json(to_json(e)) for e in events).as_dict() == result


def test_a_run_with_one_task_reports_as_ever(engine: Engine):
    result = RunReport.of(engine.stream(ARTICLE, settings(task="headline"))).as_dict()
    assert "tasks" not in result
    assert result["sidecar"]["text"]


def test_every_task_is_skipped_where_the_draft_never_read_the_article(engine: Engine):
    run = settings(draft_prompt="unrelated")
    skipped = [e for e in engine.stream(ARTICLE, run, tasks=TASKS) if isinstance(e, TagsSkipped)]
    assert {(e.task, e.tagger) for e in skipped} == {
        (task.name, tagger) for task in TASKS for tagger in ("sidecar", "standalone")
    }


@pytest.mark.parametrize(
    ("tasks", "complaint"),
    [
        (["hashtags"], "'hashtags' is no SidecarTask"),
        ([HASHTAGS, dataclasses.replace(HEADLINE, name="hashtags")], "same name"),
        ([dataclasses.replace(HASHTAGS, label="\ud800")], "half a character"),
        ([dataclasses.replace(HASHTAGS, cue="\udc80")], "half a character"),
        ([dataclasses.replace(HASHTAGS, suffix=" ")], "needs a suffix"),
        ([dataclasses.replace(HASHTAGS, cue="")], "needs a suffix and a cue"),
        ([dataclasses.replace(HASHTAGS, suffix="a" * 3_000)], "2,000 characters"),
    ],
)
def test_tasks_that_cannot_run_are_refused_before_anything_is_read(engine, tasks, complaint):
    with pytest.raises(SidecarError, match=complaint):
        engine.stream(ARTICLE, settings(), tasks=tasks)
