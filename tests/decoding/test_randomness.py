"""Who draws from what: summary, sidecar and standalone each have a source of their own."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from sidecar_core.decoding.engine import Engine
from sidecar_core.decoding.tagging import complete_summary
from sidecar_core.events import SummaryFinished, TagsFinished, TagText
from sidecar_core.experiments.corpus import Document
from sidecar_core.experiments.leak.report import CONDITIONS, LeakSettings
from sidecar_core.experiments.leak.sampling import Sampled, leak_test
from sidecar_core.models.kernels.int8 import Int8Linear
from sidecar_core.settings import RunSettings
from sidecar_core.tasks import HASHTAGS
from tests.decoding.test_exact import article
from tests.decoding.test_speculative import side
from tests.tiny import tiny_model
from tests.tiny_pair import tiny_engine

HOT = RunSettings(temperature=1.5, max_tokens=6)


def tags(engine: Engine, settings: RunSettings) -> dict[str, list[int]]:
    """The ids that each tagger drew."""
    found: dict[str, list[int]] = {}
    for event in engine.stream(article(0), settings):
        if isinstance(event, TagText):
            found.setdefault(event.tagger, []).append(event.id)
    return found


def test_summary_and_taggers_draw_from_three_sources(monkeypatch):
    sources: dict[int, int] = {}
    drawn = torch.multinomial

    def watched(probabilities, count, *, generator):
        sources[id(generator)] = generator.initial_seed()
        return drawn(probabilities, count, generator=generator)

    monkeypatch.setattr(torch, "multinomial", watched)
    list(tiny_engine().stream(article(0), dataclasses.replace(HOT, seed=7)))
    assert sorted(sources.values()) == [21, 22, 23]


def test_seeds_share_no_source():
    streams = [{seed * 3 + stream for stream in range(3)} for seed in range(50)]
    assert len(set().union(*streams)) == 150


@pytest.mark.parametrize("tagger", ["sidecar", "standalone"])
def test_taggers_heed_the_temperature(tagger):
    engine = tiny_engine()
    cold = [tags(engine, dataclasses.replace(HOT, temperature=0.0, seed=s))[tagger] for s in (1, 2)]
    assert cold[0] == cold[1]
    hot = [tags(engine, dataclasses.replace(HOT, seed=s))[tagger] for s in range(1, 4)]
    assert len({tuple(ids) for ids in hot}) > 1


def test_leak_conditions_draw_from_different_numbers():
    engine, text = tiny_engine(), article(3)
    settings = LeakSettings(samples=4, temperature=1.5)
    lists: dict[str, list[tuple[int, ...]]] = {name: [] for name in CONDITIONS}
    for item in leak_test(engine, Document("a", text), settings, summary="the mayor voted"):
        if isinstance(item, Sampled):
            lists[item.condition].append(item.sample.ids)
    assert len({tuple(sorted(ids)) for ids in lists.values()}) == len(CONDITIONS)


def test_the_article_limit_leaves_room_for_the_summary_and_the_tags():
    engine = tiny_engine()
    limits = [engine.article_limit(RunSettings(max_tokens=n)) for n in (100, 300)]
    assert limits[0] - limits[1] == 200


@pytest.mark.parametrize("fed", [True, False])
def test_the_sidecars_cache_holds_the_summary_without_its_end_of_text(fed):
    draft = side(tiny_model(1), tail=2)
    draft.run((), rows=1)
    draft.commit([5, 6, 7])
    if fed:
        draft.run((), rows=1)
    complete_summary(draft, frozenset([7]))
    assert draft.emitted == [5, 6]
    assert dict(draft.cache.segments) == {"head": 5, "tail": 2, "summary": 2}


def test_a_run_that_ends_with_an_end_of_text_tags_behind_the_summary_alone():
    engine, settings = tiny_engine(), RunSettings(max_tokens=20, document_masking=False)
    ids = next(e.ids for e in engine.stream(article(0), settings) if isinstance(e, SummaryFinished))
    target = dataclasses.replace(engine.pair.target, eos_ids=frozenset([ids[6]]))
    engine = Engine(dataclasses.replace(engine.pair, target=target))
    events = list(engine.stream(article(0), settings))
    summary = next(e for e in events if isinstance(e, SummaryFinished))
    assert summary.reason == "stop"
    found = next(e for e in events if isinstance(e, TagsFinished) and e.tagger == "sidecar")
    drawn = sum(isinstance(e, TagText) and e.tagger == "sidecar" and e.id >= 0 for e in events)
    prompt = sum(length for _, length in engine.segments(article(0), settings))
    cue = len(engine.prompts.plain(HASHTAGS.cue))
    behind = found.kv_tokens - prompt - (len(summary.ids) - 1) - cue
    # The last token is read by nobody, unless an end of text came behind it.
    assert behind in (drawn - 1, drawn)


def test_a_widened_int8_layer_is_its_weights_times_its_scales():
    torch.manual_seed(0)
    layer = Int8Linear.of(torch.nn.Linear(64, 48, bias=False))
    layer.kernel, layer.wide = "packed", torch.float32
    x = torch.randn(12, 64).bfloat16().float()
    exact = x @ (layer.weight.float() * layer.scale.float()[:, None]).T
    torch.testing.assert_close(layer(x), exact, rtol=1e-5, atol=1e-5)
