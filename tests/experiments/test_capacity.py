"""The labs hold no more columns than a run is planned to take (`capacity`)."""

from __future__ import annotations

import gc

import pytest
import torch

from sidecar_core.decoding.cache import SegmentedCache
from sidecar_core.decoding.capacity import DRAFT_CACHES, GROWTH, TOKENS
from sidecar_core.decoding.engine import Engine
from sidecar_core.experiments.alpha.conditions import ABOUT, Condition, choose
from sidecar_core.experiments.alpha.forced import read
from sidecar_core.experiments.alpha.sweep import LENGTHS, sweep_conditions
from sidecar_core.experiments.readings import MAX_TOKENS
from sidecar_core.page.labs.tag_lab import MAX_SAMPLES
from sidecar_core.settings import RunSettings
from sidecar_core.tasks import HASHTAGS
from tests.tiny_pair import tiny_engine

WORDS = 160


def allocated(but: set[int]) -> int:
    """Columns for which caches that are alive have room, but for those that were there before."""
    with torch.inference_mode():
        caches = [c for c in gc.get_objects() if type(c) is SegmentedCache and id(c) not in but]
    layers = [cache.layers[0] for cache in caches if cache.layers]
    return sum(layer._buffers[0].shape[-2] for layer in layers)


def conditions(engine: Engine, kind: str) -> tuple[Condition, ...]:
    if kind == "lengths":
        return sweep_conditions(LENGTHS)
    return choose(list(ABOUT), engine, HASHTAGS, "Some other text. " * WORDS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["conditions", "lengths"])
def test_the_alpha_lab_holds_no_more_columns_than_a_run_is_planned_to_take(kind):
    engine = tiny_engine()
    article = "The council voted on Tuesday. " * WORDS
    prompt = engine.build_prompts(article, RunSettings(draft_prompt="identical")).target
    summary = engine.prompts.plain("A summary of some words. " * 40)[:MAX_TOKENS]
    before = {id(c) for c in gc.get_objects() if type(c) is SegmentedCache}
    most = 0
    for _ in read(engine, prompt, summary, conditions(engine, kind)):
        stored = sum(c.layers[0]._buffers[0].shape[-2] for c in engine.store._entries.values())
        most = max(most, allocated(before) - stored)
    whole = len(prompt) + len(summary) + TOKENS - 4096 - 512  # what is planned beside the article
    assert 2 * len(prompt) < most  # of the target and of the draft: it is measured at all
    assert most <= GROWTH * (1 + DRAFT_CACHES) * whole


def test_the_leak_test_holds_no_more_columns_than_a_run_is_planned_to_take():
    """The draft's cache and the tagger's, the samples' own columns; none of the target's."""
    assert 2 * TOKENS + MAX_SAMPLES * HASHTAGS.max_tokens <= (1 + DRAFT_CACHES) * TOKENS
