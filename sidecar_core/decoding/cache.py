"""A KV cache that knows which columns belong to which prompt segment.

Keys and values carry their rotary position, and attention does not care in which order the columns
stand. So *who sees whom* is a matter of which columns a cache contains: a cache without the
suffix's columns is suffix masking, one without the document's is document masking, exactly and
without any mask tensor. `tests/decoding/test_composition.py` holds this against one full pass with
a 4-D mask.

Columns live in buffers that grow by half, so that a pass writes its own columns in place instead of
copying all earlier ones, and a rollback only moves the end. Who knows how many columns to expect
says so, and gets buffers of that size.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import torch
from transformers.cache_utils import Cache, DynamicLayer


class ColumnLayer(DynamicLayer):
    """One layer's keys and values, [batch, heads, length, dim], as views of larger buffers, which
    begin with room for `room` columns."""

    def __init__(self, room: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._room = room
        self._buffers: list[torch.Tensor] = []

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.device = key_states.device
        self._buffers = [key_states[:, :, :0], value_states[:, :, :0]]
        self._grow(self._room, 0)
        self.keys, self.values = (buffer[:, :, :0] for buffer in self._buffers)
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append the columns; all columns, [batch, heads, length, dim], are returned."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start = self.get_seq_length()
        end = start + key_states.shape[-2]
        if end > self._buffers[0].shape[-2]:
            self._grow(end + max(64, end // 2), start)
        for buffer, new in zip(self._buffers, (key_states, value_states), strict=True):
            buffer[:, :, start:end] = new
        self.keys, self.values = (buffer[:, :, :end] for buffer in self._buffers)
        return self.keys, self.values

    def _grow(self, capacity: int, filled: int) -> None:
        for i, old in enumerate(self._buffers):
            batch, heads, _, dim = old.shape
            self._buffers[i] = old.new_empty(batch, heads, capacity, dim)
            self._buffers[i][:, :, :filled] = old[:, :, :filled]

    @property
    def allocated(self) -> int:
        """Bytes of the buffers, filled or not."""
        return sum(buffer.numel() * buffer.element_size() for buffer in self._buffers)

    def truncate(self, length: int) -> None:
        """Keep the first `length` columns."""
        if self.is_initialized:
            self.keys, self.values = (buffer[:, :, :length] for buffer in self._buffers)


class SegmentedCache(Cache):
    """Columns of all layers with the segments they belong to, in column order.

    `forward` in `passes.py` is the only writer: it names the segment of every column it adds.
    `room` is the number of columns to be expected, where that is known; there may be more.
    """

    def __init__(self, room: int = 0) -> None:
        layer: Any = partial(ColumnLayer, room)
        super().__init__(layer_class_to_replicate=layer)
        self._segments: list[tuple[str, int]] = []

    @property
    def length(self) -> int:
        """Number of columns."""
        return sum(length for _, length in self._segments)

    @property
    def segments(self) -> tuple[tuple[str, int], ...]:
        """(name, columns) in column order."""
        return tuple(self._segments)

    @property
    def nbytes(self) -> int:
        """Bytes of the columns in use, over all layers."""
        return sum(t.numel() * t.element_size() for k, v in self._tensors() for t in (k, v))

    @property
    def allocated(self) -> int:
        """Bytes of the buffers that hold them: room to grow included."""
        return sum(layer.allocated for layer in self.layers)

    def declare(self, name: str, columns: int) -> None:
        """Say that the next `columns` columns belong to segment `name`."""
        if self._segments and self._segments[-1][0] == name:
            columns += self._segments.pop()[1]
        if columns:
            self._segments.append((name, columns))

    def drop_undeclared(self) -> None:
        """Forget the columns of a pass that failed before they were declared."""
        for layer in self.layers:
            layer.truncate(self.length)

    def rollback(self, length: int) -> None:
        """Forget all columns from `length` on. Raises ValueError where there are fewer."""
        surplus = self.length - length
        if surplus < 0 or length < 0:
            raise ValueError(f"cannot roll back {self.length} columns to {length}")
        while surplus:
            name, columns = self._segments.pop()
            if columns > surplus:
                self._segments.append((name, columns - surplus))
            surplus -= min(surplus, columns)
        for layer in self.layers:
            layer.truncate(length)

    def take(self, *names: str) -> SegmentedCache:
        """A new cache with copies of the columns of these segments, in their present order."""
        taken = SegmentedCache()
        taken.add(self, *names)
        return taken

    def fork(self) -> SegmentedCache:
        """A copy of all columns; the two go their own ways."""
        return self.take(*(name for name, _ in self._segments))

    @torch.inference_mode()
    def add(self, other: SegmentedCache, *names: str) -> None:
        """Append copies of `other`'s columns of these segments. Raises KeyError if it has none."""
        if missing := set(names) - {name for name, _ in other.segments}:
            raise KeyError(f"no columns of {', '.join(sorted(missing))} in this cache")
        spans = list(_spans(other.segments, names))
        for index, (keys, values) in enumerate(other._tensors()):
            self.update(
                torch.cat([keys[:, :, span] for _, span in spans], dim=-2),
                torch.cat([values[:, :, span] for _, span in spans], dim=-2),
                index,
            )
        for name, span in spans:
            self.declare(name, span.stop - span.start)

    def repeat(self, batch: int) -> SegmentedCache:
        """A new cache with every row copied `batch` times: the start of a batch of samples."""
        repeated = SegmentedCache()
        for index, (keys, values) in enumerate(self._tensors()):
            repeated.update(keys.expand(batch, -1, -1, -1), values.expand(batch, -1, -1, -1), index)
        repeated._segments = list(self._segments)
        return repeated

    def _tensors(self) -> Iterable[tuple[torch.Tensor, torch.Tensor]]:
        for layer in self.layers:
            if layer.keys is not None and layer.values is not None:
                yield layer.keys, layer.values


def _spans(
    segments: tuple[tuple[str, int], ...], names: tuple[str, ...]
) -> Iterable[tuple[str, slice]]:
    start = 0
    for name, columns in segments:
        if name in names:
            yield name, slice(start, start + columns)
        start += columns
