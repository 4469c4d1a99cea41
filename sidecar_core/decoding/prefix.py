"""Chunked prefill, and the store that lets the same prefix be read only once.

Head, document and instruction stand before everything that a setting can change, so their columns
serve every setting. The store keeps them by weights, precision and segments: whoever sends the same
segments gets the same columns, and nobody can tell but by speed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from sidecar_core.decoding.cache import SegmentedCache
from sidecar_core.decoding.passes import forward
from sidecar_core.errors import Cancelled
from sidecar_core.models.pair import LoadedModel
from sidecar_core.prompts import Segment


def prefill(
    model: LoadedModel, cache: SegmentedCache, segments: Sequence[Segment], position: int
) -> Iterator[int]:
    """Read `segments` into `cache` from `position` on; yields the tokens done after each chunk.

    Chunks end at multiples of the model's chunk size (see `calibration`), whatever the time, so
    that the same tokens always get the same columns.
    """
    named = [(segment.name, token) for segment in segments for token in segment.ids]
    start = 0
    while start < len(named):
        size = model.calibration.chunk
        chunk = named[start : start + size - (cache.length % size)]
        forward(
            model,
            cache,
            [token for _, token in chunk],
            position + start,
            segment=[(name, 1) for name, _ in chunk],
            rows=0,
            kind="read",
        )
        start += len(chunk)
        yield start


Key = tuple[str, tuple[tuple[str, tuple[int, ...]], ...]]
T = TypeVar("T")


@dataclass(slots=True)
class PrefixStore:
    """Columns of prompt prefixes, at most `max_bytes` of them, the longest unused evicted first.

    Stored caches are never written to: callers `fork` or `take` from them. Safe between threads.
    """

    max_bytes: int = 1 << 30
    _entries: OrderedDict[Key, SegmentedCache] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, model: LoadedModel, segments: Sequence[Segment]) -> SegmentedCache | None:
        """The columns of exactly these segments under exactly these weights, or None."""
        with self._lock:
            key = _key(model, segments)
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def put(self, model: LoadedModel, segments: Sequence[Segment], cache: SegmentedCache) -> None:
        """Keep `cache`, unless it alone is larger than the store."""
        with self._lock:
            if cache.allocated > self.max_bytes:
                return
            self._entries[_key(model, segments)] = cache
            while self.nbytes > self.max_bytes:
                self._entries.popitem(last=False)

    def read(
        self,
        model: LoadedModel,
        segments: Sequence[Segment],
        told: Callable[[int], T],
        stop: Callable[[], bool],
    ) -> Generator[T, None, SegmentedCache]:
        """The columns of these tokens, read now where they are not here, and then kept.

        Yields what `told` makes of the number of tokens done after each chunk. Raises Cancelled
        soon after `stop` says so.
        """
        if (kept := self.get(model, segments)) is not None:
            return kept
        cache = SegmentedCache(room=sum(len(segment) for segment in segments))
        for done in prefill(model, cache, segments, 0):
            yield told(done)
            if stop():
                raise Cancelled
        self.put(model, segments, cache)
        return cache

    def forget(self, model: LoadedModel, segments: Sequence[Segment]) -> None:
        """Let these columns go, if they are here."""
        with self._lock:
            self._entries.pop(_key(model, segments), None)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the stored columns take."""
        return sum(cache.allocated for cache in self._entries.values())


def _key(model: LoadedModel, segments: Sequence[Segment]) -> Key:
    """Segments with their borders: the same tokens under other names are another prefix."""
    return model.fingerprint, tuple((segment.name, segment.ids) for segment in segments)
