"""Chunked prefill, and the store that lets the same prefix be read only once.

Head, document and instruction stand before everything that a setting can change, so their columns
serve every setting. The store keeps them by weights, precision and tokens: whoever sends the same
tokens gets the same columns, and nobody can tell but by speed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sidecar_core.decoding.cache import SegmentedCache
from sidecar_core.decoding.passes import forward
from sidecar_core.models.pair import LoadedModel
from sidecar_core.prompts import Segment

CHUNK = {"cpu": 64, "cuda": 1024}
"""Tokens per prefill pass. A Stop waits for one chunk; larger chunks read a little faster."""


def chunk_size(model: LoadedModel) -> int:
    return CHUNK.get(model.device.type, 256)


def prefill(
    model: LoadedModel, cache: SegmentedCache, segments: Sequence[Segment], position: int
) -> Iterator[int]:
    """Read `segments` into `cache` from `position` on; yields the tokens done after each chunk."""
    named = [(segment.name, token) for segment in segments for token in segment.ids]
    size = chunk_size(model)
    for start in range(0, len(named), size):
        chunk = named[start : start + size]
        forward(
            model,
            cache,
            [token for _, token in chunk],
            position + start,
            segment=[(name, 1) for name, _ in chunk],
            rows=0,
        )
        yield start + len(chunk)


Key = tuple[str, tuple[int, ...]]


@dataclass(slots=True)
class PrefixStore:
    """Columns of prompt prefixes, at most `max_bytes` of them, the longest unused evicted first.

    Stored caches are never written to: callers `fork` or `take` from them. Safe between threads.
    """

    max_bytes: int = 1 << 30
    _entries: OrderedDict[Key, SegmentedCache] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, model: LoadedModel, segments: Sequence[Segment]) -> SegmentedCache | None:
        """The columns of exactly these tokens under exactly these weights, or None."""
        with self._lock:
            key = _key(model, segments)
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def put(self, model: LoadedModel, segments: Sequence[Segment], cache: SegmentedCache) -> None:
        """Keep `cache`, unless it alone is larger than the store."""
        with self._lock:
            if cache.nbytes > self.max_bytes:
                return
            self._entries[_key(model, segments)] = cache
            while self.nbytes > self.max_bytes:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()

    @property
    def nbytes(self) -> int:
        """Bytes of all stored columns."""
        return sum(cache.nbytes for cache in self._entries.values())


def _key(model: LoadedModel, segments: Sequence[Segment]) -> Key:
    return model.fingerprint, tuple(token for segment in segments for token in segment.ids)
