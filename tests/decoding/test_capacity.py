"""How many runs fit beside each other."""

from __future__ import annotations

import gc

import pytest

from sidecar_core.decoding.cache import SegmentedCache
from sidecar_core.decoding.capacity import (
    DRAFT_CACHES,
    MOST,
    column_bytes,
    fitting,
    run_bytes,
)
from sidecar_core.decoding.passes import forward
from sidecar_core.settings import RunSettings
from tests.tiny_pair import tiny_engine


def test_on_a_cpu_runs_go_one_at_a_time():
    assert tiny_engine().runs_at_once == 1


def test_a_column_is_as_large_as_the_cache_says():
    model = tiny_engine().pair.draft
    cache = SegmentedCache()
    forward(model, cache, [1, 2, 3, 4], 0, segment="document")
    assert 4 * column_bytes(model) == cache.nbytes


def test_a_run_needs_more_than_its_longest_caches():
    pair = tiny_engine().pair
    assert run_bytes(pair) > 4096 * (column_bytes(pair.target) + column_bytes(pair.draft))


@pytest.mark.slow
def test_a_run_never_holds_more_caches_than_are_counted():
    engine = tiny_engine()
    others = [c for c in gc.get_objects() if type(c) is SegmentedCache]
    held: list[float] = []
    settings = RunSettings(suffix_masking=False, document_masking=False, max_tokens=20)
    for _ in engine.stream("The plant closed on Friday. " * 20, settings):
        known = {*map(id, others), *map(id, engine.store._entries.values())}
        caches = [c for c in gc.get_objects() if type(c) is SegmentedCache and id(c) not in known]
        longest = max((cache.length for cache in caches), default=1)
        held.append(sum(cache.nbytes for cache in caches) / max(longest, 1))
    target, draft = column_bytes(engine.pair.target), column_bytes(engine.pair.draft)
    assert target + draft < max(held) <= target + DRAFT_CACHES * draft


@pytest.mark.parametrize(
    ("free", "runs"), [(-5, 1), (0, 1), (19, 1), (20, 2), (39, 3), (10_000, MOST)]
)
def test_as_many_as_fit_but_one_at_least_and_never_more_than_a_few(free, runs):
    assert fitting(free, 10) == runs
