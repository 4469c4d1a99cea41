"""Chunked prefill and the store of prefixes."""

from __future__ import annotations

import dataclasses
import threading

import pytest
import torch

from sidecar_core.decoding import prefix
from sidecar_core.decoding.cache import SegmentedCache
from sidecar_core.decoding.passes import forward
from sidecar_core.decoding.prefix import PrefixStore, next_chunk, prefill
from sidecar_core.prompts import Segment
from tests.tiny import tiny_model

MODEL = tiny_model(0)


def segments(seed: int = 0, length: int = 50) -> tuple[Segment, ...]:
    source = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, 40, (length,), generator=source).tolist()
    return (Segment("head", tuple(ids[:7])), Segment("document", tuple(ids[7:])))


def filled(parts) -> SegmentedCache:
    cache = SegmentedCache()
    assert list(prefill(MODEL, cache, parts, 0))[-1] == sum(map(len, parts))
    return cache


@pytest.mark.parametrize("first", [1, 5, 32, 64])
def test_where_chunks_end_makes_no_difference(monkeypatch, first):
    monkeypatch.setitem(prefix.FIRST_CHUNK, "cpu", first)
    chunked, whole = filled(segments()), SegmentedCache()
    ids = [token for part in segments() for token in part.ids]
    forward(MODEL, whole, ids, 0, segment="head", rows=0)
    assert chunked.segments == (("head", 7), ("document", 43))
    one = forward(MODEL, chunked, [3], 50, segment="tail")
    two = forward(MODEL, whole, [3], 50, segment="tail")
    assert torch.allclose(one, two, atol=1e-5)


def test_chunks_grow_towards_the_time_that_a_stop_may_take():
    aim = prefix.CHUNK_SECONDS
    assert next_chunk(32, aim / 10) == 64  # at most doubled
    assert next_chunk(128, aim) == 128
    assert next_chunk(128, 2 * aim) == 64
    assert next_chunk(32, 100 * aim) == 32
    assert next_chunk(prefix.MOST, 1e-9) == prefix.MOST


def test_the_store_gives_back_what_was_put_for_exactly_these_tokens_and_weights():
    store, cache = PrefixStore(), filled(segments())
    store.put(MODEL, segments(), cache)
    assert store.get(MODEL, segments()) is cache
    assert store.get(MODEL, segments(1)) is None
    other = dataclasses.replace(MODEL, fingerprint="other weights")
    assert store.get(other, segments()) is None


def test_the_longest_unused_is_evicted_first_and_the_bound_holds():
    caches = {seed: filled(segments(seed)) for seed in range(3)}
    store = PrefixStore(max_bytes=2 * caches[0].allocated)
    store.put(MODEL, segments(0), caches[0])
    store.put(MODEL, segments(1), caches[1])
    store.get(MODEL, segments(0))
    store.put(MODEL, segments(2), caches[2])
    assert store.get(MODEL, segments(1)) is None
    assert store.get(MODEL, segments(0)) is caches[0]
    assert store.nbytes <= store.max_bytes


def test_what_is_larger_than_the_store_is_not_kept():
    store = PrefixStore(max_bytes=10)
    store.put(MODEL, segments(), filled(segments()))
    assert store.nbytes == 0


def test_many_threads_may_use_the_store():
    store = PrefixStore(max_bytes=3 * filled(segments()).allocated)
    caches = [filled(segments(seed)) for seed in range(6)]
    wrong = []

    def work(seed: int) -> None:
        for _ in range(200):
            store.put(MODEL, segments(seed), caches[seed])
            found = store.get(MODEL, segments(seed))
            if found is not None and found is not caches[seed]:
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert store.nbytes <= store.max_bytes
