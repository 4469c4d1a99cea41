"""What was measured of an article, kept on disk, so that a rerun or a crash loses nothing.

One JSON file per article, in the folder `alpha` of the cache, under a digest of everything that its
contents follow from: both models' weights and precision, the target's prompt with the borders of
its segments, what ends a summary, the longest one, and the drafts a round.
Files are written in one step; one that cannot be read is measured again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sidecar_core.experiments.readings import Live, Reading
from sidecar_core.models.cache import cache_dir, storage_errors, write_text

if TYPE_CHECKING:
    from sidecar_core.decoding.engine import Engine
    from sidecar_core.prompts import Prompt

FORMAT = 2
"""Part of the digest: a change of what is measured leaves older files aside."""


@dataclass(slots=True)
class Record:
    """The target's greedy summary of one article, and the readings of it so far."""

    summary: tuple[int, ...]
    reason: str
    live: Live
    readings: dict[str, Reading] = field(default_factory=dict)


class RecordStore(Protocol):
    """Where records stand between two measurements."""

    def load(self, key: str) -> Record | None: ...

    def save(self, key: str, record: Record) -> None: ...


class InMemory:
    """The latest `capacity` records, in this process only: nothing of a visitor's goes to disk."""

    def __init__(self, capacity: int = 256) -> None:
        self._capacity = capacity
        self._records: dict[str, Record] = {}

    def load(self, key: str) -> Record | None:
        return self._records.get(key)

    def save(self, key: str, record: Record) -> None:
        self._records[key] = record
        while len(self._records) > self._capacity:
            del self._records[next(iter(self._records))]


@dataclass(frozen=True, slots=True)
class Records:
    """Records in `folder`; None keeps nothing. `fresh` ones are written but not read."""

    folder: Path | None
    fresh: bool = False

    @classmethod
    def in_cache(cls, *, fresh: bool = False) -> Records:
        return cls(cache_dir() / "alpha", fresh)

    def load(self, key: str) -> Record | None:
        """The record, or None where there is none or it is damaged."""
        if self.folder is None or self.fresh:
            return None
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            return _of_json(json.loads(self._file(key).read_text(encoding="utf-8")))
        return None

    def save(self, key: str, record: Record) -> None:
        """Raises SidecarError where the disk refuses."""
        if self.folder is None:
            return
        with storage_errors("Keeping a measurement"):
            write_text(self._file(key), json.dumps(dataclasses.asdict(record)))

    def _file(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{key}.json"


def record_key(engine: Engine, prompt: Prompt, max_tokens: int, gamma: int) -> str:
    """Names an article's record; `prompt` is the target's."""
    models = [engine.pair.target.fingerprint, engine.pair.draft.fingerprint]
    return digest([FORMAT, models, prompt.parts, sorted(engine.stop_ids), max_tokens, gamma])


def digest(value: Any) -> str:
    """32 hexadecimal digits that name a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def _of_json(data: dict[str, Any]) -> Record:
    readings = {
        key: Reading(tuple(map(float, r["overlaps"])), tuple(map(bool, r["agreed"])))
        for key, r in data["readings"].items()
    }
    summary = tuple(map(int, data["summary"]))
    lengths = {len(part) for r in readings.values() for part in (r.overlaps, r.agreed)}
    if not summary or lengths - {len(summary)}:
        raise ValueError("a reading is not as long as its summary")
    return Record(summary, str(data["reason"]), Live(**data["live"]), readings)
