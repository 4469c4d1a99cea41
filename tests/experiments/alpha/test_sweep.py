"""The length of the suffix and its place."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from sidecar_core.decoding.engine import Engine
from sidecar_core.errors import SidecarError
from sidecar_core.experiments.alpha.conditions import Condition
from sidecar_core.experiments.alpha.measure import measure
from sidecar_core.experiments.alpha.placement import (
    PLACEMENTS,
    PlacedTags,
    folded_cue,
    placement_conditions,
    pool_placement,
    tag_everywhere,
)
from sidecar_core.experiments.alpha.published import PUBLISHED
from sidecar_core.experiments.alpha.sweep import (
    ADVICE,
    LENGTHS,
    check_lengths,
    lengthened,
    pool_sweep,
    sweep_conditions,
)
from sidecar_core.experiments.readings import DocumentAlpha, Step
from sidecar_core.settings import RunSettings
from sidecar_core.tasks import HASHTAGS
from tests.experiments.measured import ARTICLES, DOCUMENTS, close_engine

TOKENS = 30


@pytest.fixture(scope="module")
def engine() -> Engine:
    return close_engine()


def measured(engine: Engine, conditions: Sequence[Condition]) -> list[DocumentAlpha]:
    items = measure(engine, DOCUMENTS, conditions, max_tokens=TOKENS)
    return [item for item in items if isinstance(item, DocumentAlpha)]


def test_the_suffix_grows_by_advice_to_exactly_the_length(engine):
    for length in (1, 5, 60, 400, 1_500):
        ids = lengthened(engine.prompts, HASHTAGS.suffix, length)
        assert len(ids) == length
        text = engine.pair.tokenizer.decode(ids)
        assert (HASHTAGS.suffix + " " + " ".join(ADVICE * 9)).startswith(text)


def test_a_longer_suffix_begins_like_a_shorter_one(engine):
    whole = lengthened(engine.prompts, HASHTAGS.suffix, 300)
    assert lengthened(engine.prompts, HASHTAGS.suffix, 120) == whole[:120]


def test_the_cost_is_identical_minus_masked_and_none_at_length_zero(engine):
    lengths = (0, 25, 400)
    found = pool_sweep(measured(engine, sweep_conditions(lengths)), lengths)
    assert list(found["lengths"]) == ["0", "25", "400"]
    for point in found["lengths"].values():
        assert point["cost"] == pytest.approx(point["identical"] - point["masked"])
        low, high = point["ci95"]
        assert low - 1e-9 <= point["cost"] <= high + 1e-9
    assert found["lengths"]["0"]["cost"] == pytest.approx(0.0, abs=1e-6)
    assert abs(found["lengths"]["400"]["cost"]) > 1e-4


def test_a_masked_suffix_costs_the_same_whatever_it_says(engine):
    """The condition holds no words; those of the real suffix give the same figure."""
    from sidecar_core.experiments.alpha.conditions import choose

    (with_words,) = choose(["masked"], engine, HASHTAGS)
    (without,) = sweep_conditions([len(engine.prompts.plain(HASHTAGS.suffix))])[1:]
    for one in measured(engine, [with_words, without]):
        first, second = one.readings.values()
        assert first.overlaps == pytest.approx(second.overlaps, abs=1e-6)


def test_a_suffix_in_sight_is_measured_beside_it_if_wanted(engine):
    lengths = (25, 50)
    seen = [lengthened(engine.prompts, HASHTAGS.suffix, n) for n in lengths]
    found = pool_sweep(measured(engine, sweep_conditions(lengths, seen)), lengths)
    for point in found["lengths"].values():
        assert point["leak"] == pytest.approx(point["masked"] - point["visible"])
        assert abs(point["leak"]) > 1e-4


@pytest.mark.parametrize("lengths", [[], [-1], [25, 2_001]])
def test_lengths_out_of_range_are_refused(lengths):
    with pytest.raises(SidecarError, match="length"):
        check_lengths(lengths)


def test_lengths_are_put_in_order():
    assert check_lengths([100, 25, 100]) == (25, 100)


def test_the_published_costs_follow_from_the_published_alphas():
    for pair in PUBLISHED.values():
        assert tuple(pair.cost) == LENGTHS
        gap = pair.alpha["identical"] - pair.alpha["masked"]
        assert pair.cost[25] == pytest.approx(gap, abs=1.01e-4)  # the posts round


# --- placement --------------------------------------------------------------------------------


def tagged(engine: Engine, result: DocumentAlpha, article: str, **options) -> PlacedTags:
    steps = tag_everywhere(engine, article, result, HASHTAGS, **options)
    while True:
        try:
            assert isinstance(next(steps), Step)
        except StopIteration as finished:
            return finished.value


LIVE = {
    "natural": {"draft_prompt": "compound"},
    "rebased": {"draft_prompt": "compound", "positions": "rebased"},
    "deferred": {"draft_prompt": "identical"},
}


@pytest.mark.slow
@pytest.mark.parametrize("masking", [True, False])
def test_the_tags_of_every_placement_are_those_of_a_live_run(engine, masking):
    from sidecar_core.report import RunReport

    results = measured(engine, placement_conditions(engine, HASHTAGS))
    for result, article in zip(results, ARTICLES, strict=True):
        found = tagged(engine, result, article, document_masking=masking)
        for placement, settings in LIVE.items():
            live = RunReport.of(
                engine.stream(
                    article,
                    RunSettings(max_tokens=TOKENS, document_masking=masking, **settings),
                )
            )
            assert found.tags[placement] == live.taggers["sidecar"].finished.tags
            assert found.summary == live.text


def test_the_folded_request_is_read_with_the_cue_behind_the_summary(engine):
    """As if the draft alone had read prompt, summary, request and opening from left to right."""
    (result, *_), article = measured(engine, placement_conditions(engine, HASHTAGS)), ARTICLES[0]
    found = tagged(engine, result, article, document_masking=False)
    prompt = engine.build_prompts(article, RunSettings(draft_prompt="identical")).target
    ids = [*prompt.ids, *(i for i in result.summary_ids if i not in engine.stop_ids)]
    ids += engine.prompts.plain(folded_cue(HASHTAGS))
    written: list[int] = []
    for _ in range(HASHTAGS.max_tokens):
        logits = engine.pair.draft.network(input_ids=torch.tensor([[*ids, *written]])).logits
        token = int(logits[0, -1, : engine.pair.vocab_size].argmax())
        if token in engine.stop_ids:
            break
        written.append(token)
        if HASHTAGS.is_done(engine.pair.tokenizer.decode(written)):
            break
    assert written
    assert found.tags["folded"] == HASHTAGS.parse(engine.pair.tokenizer.decode(written))


def test_placements_are_compared_by_alpha_and_by_where_their_tags_stand(engine):
    results = measured(engine, placement_conditions(engine, HASHTAGS))
    tags = {
        "natural": ("boilers", "council"),
        "rebased": ("boilers", "quay"),
        "deferred": (),
        "folded": ("council",),
    }
    placed = [PlacedTags("New boilers.", tags) for _ in results]
    articles = ["The council wants new boilers."] * len(results)
    found = pool_placement(results, articles, placed)["placements"]
    assert list(found) == list(PLACEMENTS)
    assert found["natural"]["in_summary"] == 0.5
    assert found["natural"]["only_in_document"] == 0.5
    assert found["rebased"]["in_neither"] == 0.5
    assert found["deferred"]["in_summary"] is None
    assert found["deferred"]["without_tags"] == len(results)
    assert found["natural"]["same_as_natural"] == 1.0
    assert found["rebased"]["same_as_natural"] == pytest.approx(1 / 3)
    assert found["deferred"]["cost"] == 0.0
    assert found["rebased"]["cost"] == pytest.approx(0.0, abs=1e-6)
    assert abs(found["natural"]["cost"]) > 1e-5
