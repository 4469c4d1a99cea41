"""Claims about whose end of text ends what, on a tiny pair whose two models disagree about it.

The oracle is the same pair without the disputed token: nothing may differ but what it ends.
"""

from __future__ import annotations

import dataclasses

import pytest

from sidecar_core.decoding.engine import Engine
from sidecar_core.experiments.alpha import placement
from sidecar_core.experiments.alpha.measure import measure
from sidecar_core.experiments.corpus import Document
from sidecar_core.experiments.leak.report import LeakSettings, Sampled
from sidecar_core.experiments.leak.sampling import leak_test
from sidecar_core.experiments.readings import DocumentAlpha
from sidecar_core.report import RunReport
from sidecar_core.settings import RunSettings
from sidecar_core.tasks import HASHTAGS, free_task
from tests.experiments.measured import close_engine
from tests.tiny_pair import tiny_engine

ARTICLE = "The council voted on Tuesday to replace the boilers of the old quarter."
SETTINGS = RunSettings(max_tokens=24)
TASK = free_task("After the summary, output anything.")


def ending(engine: Engine, *, target: int | None = None, draft: int | None = None) -> Engine:
    """The same engine whose target or draft has one more end of text."""
    models = {"target": target, "draft": draft}
    changed = {
        name: dataclasses.replace(model, eos_ids=model.eos_ids | {token})
        for name, token in models.items()
        if token is not None and (model := getattr(engine.pair, name))
    }
    return Engine(dataclasses.replace(engine.pair, **changed))


def run(engine: Engine, settings: RunSettings = SETTINGS) -> RunReport:
    return RunReport.of(engine.stream(ARTICLE, settings, task=TASK))


def tag_ids(engine: Engine, tagger: str) -> list[int]:
    events = engine.stream(ARTICLE, SETTINGS, task=TASK)
    return [e.id for e in events if getattr(e, "tagger", "") == tagger and hasattr(e, "id")]


@pytest.mark.parametrize("make", [tiny_engine, close_engine])
@pytest.mark.parametrize("changes", [{}, {"gamma": 0}, {"temperature": 1.0}])
def test_an_end_of_text_that_only_the_draft_has_is_a_token_of_the_summary(make, changes):
    settings = dataclasses.replace(SETTINGS, **changes)
    plain = run(make(), settings)
    middle = plain.ids[len(plain.ids) // 2]
    report = run(ending(make(), draft=middle), settings)
    assert report.ids == plain.ids
    assert report.summary.reason == plain.summary.reason


def test_an_end_of_text_that_only_the_target_has_ends_the_summary():
    plain = run(tiny_engine())
    middle = plain.ids[len(plain.ids) // 2]
    report = run(ending(tiny_engine(), target=middle))
    assert report.ids == plain.ids[: plain.ids.index(middle) + 1]
    assert report.summary.reason == "stop"


@pytest.mark.slow
def test_the_sidecar_attends_to_the_last_token_unless_that_ended_the_targets_text():
    plain = run(tiny_engine())
    last = plain.ids[-1]
    assert last not in tag_ids(tiny_engine(), "sidecar")

    def attended(engine: Engine) -> int:
        report = run(engine)
        assert report.ids == plain.ids
        return report.taggers["sidecar"].finished.kv_tokens

    assert attended(ending(tiny_engine(), draft=last)) == attended(tiny_engine())
    assert attended(ending(tiny_engine(), target=last)) == attended(tiny_engine()) - 1


@pytest.mark.parametrize("tagger", ["sidecar", "standalone"])
@pytest.mark.parametrize("whose", ["target", "draft"])
def test_both_models_ends_of_text_end_a_tagger(tagger, whose):
    plain = tag_ids(tiny_engine(), tagger)
    report = run(tiny_engine())
    token = next(t for t in plain[3:] if t not in report.ids)
    ended = tag_ids(ending(tiny_engine(), **{whose: token}), tagger)
    assert ended == plain[: plain.index(token)]


@pytest.mark.parametrize("whose", ["target", "draft"])
def test_both_models_ends_of_text_end_a_sample_of_the_leak_test(whose):
    summary = "A new boiler."

    def samples(engine: Engine) -> list[list[int]]:
        settings = LeakSettings(samples=4, conditions=("masked", "recomputed"))
        events = leak_test(engine, Document("one", ARTICLE), settings, summary=summary)
        found = [e for e in events if isinstance(e, Sampled)]
        found.sort(key=lambda e: (e.condition, e.sample.row))
        return [list(e.sample.ids) for e in found]

    plain = samples(tiny_engine())
    token = plain[0][2]
    cut = [ids[: ids.index(token)] if token in ids else ids for ids in plain]
    assert cut != plain
    assert samples(ending(tiny_engine(), **{whose: token})) == cut


def test_an_end_of_text_that_only_the_draft_has_leaves_a_measurement_as_it_was():
    def measured(engine: Engine) -> DocumentAlpha:
        items = measure(
            engine,
            [Document("one", ARTICLE)],
            placement.placement_conditions(engine, HASHTAGS),
            max_tokens=24,
        )
        (found,) = (item for item in items if isinstance(item, DocumentAlpha))
        return found

    plain = measured(tiny_engine())
    assert measured(ending(tiny_engine(), draft=plain.summary_ids[10])) == plain
