"""Columns and their segments."""

from __future__ import annotations

import pytest
import torch

from sidecar_core.decoding.cache import SegmentedCache
from sidecar_core.decoding.passes import forward
from sidecar_core.errors import ModelFailed
from tests.faults import not_finite
from tests.tiny import tiny_model

MODEL = tiny_model(0)


def filled() -> SegmentedCache:
    cache = SegmentedCache()
    forward(MODEL, cache, [1, 2], 0, segment="head", rows=0)
    forward(MODEL, cache, [3, 4, 5], 2, segment="document", rows=0)
    forward(MODEL, cache, [6], 5, segment="tail", rows=0)
    return cache


def tensors(cache: SegmentedCache) -> list[torch.Tensor]:
    return [t for layer in cache.layers for t in (layer.keys, layer.values)]


def test_a_cache_knows_its_segments_and_their_columns():
    cache = filled()
    assert cache.segments == (("head", 2), ("document", 3), ("tail", 1))
    assert cache.length == cache.get_seq_length() == 6
    assert cache.nbytes == 2 * 2 * 6 * 2 * 8 * 4  # layers, K and V, columns, heads, dim, bytes


def test_one_pass_may_fill_several_segments():
    cache = SegmentedCache()
    forward(MODEL, cache, [1, 2, 3], 0, segment=[("tail", 1), ("summary", 2)], rows=0)
    assert cache.segments == (("tail", 1), ("summary", 2))


def test_rollback_trims_segments_from_the_end_and_the_columns_with_them():
    cache = filled()
    before = [t[:, :, :3].clone() for t in tensors(cache)]
    cache.rollback(3)
    assert cache.segments == (("head", 2), ("document", 1))
    assert all(torch.equal(a, b) for a, b in zip(tensors(cache), before, strict=True))


@pytest.mark.parametrize("length", [-1, 7])
def test_rollback_to_where_the_cache_never_was_is_refused(length):
    with pytest.raises(ValueError, match="roll back"):
        filled().rollback(length)


def test_what_follows_a_rollback_is_as_if_the_forgotten_columns_had_never_been():
    cache = filled()
    cache.rollback(3)
    again = forward(MODEL, cache, [9, 8], 3, segment="tail", rows=2)
    fresh = SegmentedCache()
    wanted = forward(MODEL, fresh, [1, 2, 3, 9, 8], 0, segment="head", rows=2)
    assert torch.allclose(again, wanted, atol=1e-5)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_pass_that_failed_leaves_the_cache_as_it_was(value):
    cache = filled()
    with not_finite(MODEL, 1, value), pytest.raises(ModelFailed):
        forward(MODEL, cache, [9, 8], 6, segment="tail", rows=2)
    assert cache.segments == filled().segments
    assert all(t.shape[-2] == 6 for t in tensors(cache))
    again = forward(MODEL, cache, [9, 8], 6, segment="tail", rows=2)
    assert torch.equal(again, forward(MODEL, filled(), [9, 8], 6, segment="tail", rows=2))


def test_a_fork_and_its_origin_go_their_own_ways():
    cache = filled()
    fork = cache.fork()
    before = [t.clone() for t in tensors(cache)]
    forward(MODEL, fork, [7, 7], 6, segment="tail", rows=0)
    fork.rollback(4)
    forward(MODEL, fork, [30], 4, segment="tail", rows=0)
    assert cache.segments == filled().segments
    assert all(torch.equal(a, b) for a, b in zip(tensors(cache), before, strict=True))


def test_take_leaves_columns_out_and_makes_the_cache_smaller():
    cache = filled()
    taken = cache.take("head", "tail")
    assert taken.segments == (("head", 2), ("tail", 1))
    assert taken.nbytes == cache.nbytes // 2
    for whole, part in zip(tensors(cache), tensors(taken), strict=True):
        assert torch.equal(part, torch.cat([whole[:, :, :2], whole[:, :, 5:]], dim=-2))


def test_add_appends_columns_of_another_cache_and_refuses_what_it_lacks():
    cache = filled().take("head")
    cache.add(filled(), "tail")
    assert cache.segments == (("head", 2), ("tail", 1))
    with pytest.raises(KeyError, match="suffix"):
        cache.add(filled(), "suffix")


def test_a_cache_whose_length_is_known_takes_no_more_memory_and_may_still_grow():
    cache = SegmentedCache(room=6)
    forward(MODEL, cache, [1, 2], 0, segment="head", rows=0)
    forward(MODEL, cache, [3, 4, 5], 2, segment="document", rows=0)
    forward(MODEL, cache, [6], 5, segment="tail", rows=0)
    assert cache.allocated == cache.nbytes == filled().nbytes
    pairs = zip(tensors(cache), tensors(filled()), strict=True)
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in pairs)
    forward(MODEL, cache, [7], 6, segment="tail", rows=0)
    assert cache.length == 7


def test_the_order_of_columns_does_not_matter():
    cache, turned = filled(), filled().take("tail")
    turned.add(filled(), "head", "document")
    one = forward(MODEL, cache, [11], 6, segment="tags")
    two = forward(MODEL, turned, [11], 6, segment="tags")
    assert torch.allclose(one, two, atol=1e-5)


def test_repeated_rows_are_independent_samples_of_the_same_start():
    batch = filled().repeat(3)
    logits = forward(MODEL, batch, torch.tensor([[1], [2], [1]]), 6, segment="tags")
    assert logits.shape == (3, 1, 40)
    assert torch.allclose(logits[0], logits[2])
    alone = forward(MODEL, filled(), [2], 6, segment="tags")
    assert torch.allclose(logits[1], alone, atol=1e-5)
