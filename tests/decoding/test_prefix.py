"""Chunked prefill and the store of prefixes."""

from __future__ import annotations

import dataclasses
import itertools
import threading

import pytest
import torch

from sidecar_core.decoding.cache import SegmentedCache
from sidecar_core.decoding.prefix import PrefixStore, prefill
from sidecar_core.models.kernels.calibration import Calibration
from sidecar_core.models.pair import LoadedModel
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


def of_chunk(model: LoadedModel, chunk: int) -> LoadedModel:
    return dataclasses.replace(model, calibration=Calibration(chunk=chunk))


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize("chunk", [32, 96, 512])
def test_where_chunks_end_changes_no_bit(chunk, precision):
    model = tiny_model(0, precision=precision)
    chunked, whole = SegmentedCache(), SegmentedCache()
    list(prefill(of_chunk(model, chunk), chunked, segments(length=150), 0))
    list(prefill(of_chunk(model, 1024), whole, segments(length=150), 0))
    assert chunked.segments == (("head", 7), ("document", 143))
    for ours, theirs in zip(chunked.layers, whole.layers, strict=True):
        assert torch.equal(ours.keys, theirs.keys)
        assert torch.equal(ours.values, theirs.values)


def test_chunks_end_at_multiples_of_their_size_wherever_reading_begins():
    cache = SegmentedCache()
    list(prefill(MODEL, cache, segments(length=50), 0))
    more = list(prefill(of_chunk(MODEL, 32), cache, segments(length=50), 50))
    assert more == [14, 46, 50]


def test_the_same_tokens_under_other_names_are_another_prefix():
    def cut(*borders: int) -> tuple[Segment, ...]:
        names = ("head", "document", "instruction")
        edges = itertools.pairwise((0, *borders, 20))
        return tuple(Segment(n, tuple(range(*e))) for n, e in zip(names, edges, strict=False))

    store = PrefixStore()
    mine, one, moved = cut(5, 15), cut(5), cut(5, 14)
    for parts in (one, moved):
        store.put(MODEL, parts, filled(parts))
    assert store.get(MODEL, mine) is None
    assert store.get(MODEL, one).segments == (("head", 5), ("document", 15))


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
