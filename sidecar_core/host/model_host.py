"""The models behind the page: loaded in a background thread, shared by all visitors.

The page is up before the weights are loaded. `ModelHost.status()` tells at any moment what is
happening; `ModelHost.engine()` is the engine once it is ready; `ModelHost.queue` decides who uses
it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from sidecar_core.errors import SidecarError
from sidecar_core.events import Event, LoadProgress
from sidecar_core.host.limits import LAB_SHARE, MAX_SECONDS, MAX_WAITING
from sidecar_core.host.monitor import Monitor
from sidecar_core.host.queue import RunQueue
from sidecar_core.prompts import Article
from sidecar_core.settings import RunSettings


class EngineLike(Protocol):
    """What the page needs of an engine (`sidecar_core.decoding.engine.Engine`)."""

    prompts: Any

    def article_limit(self, settings: RunSettings) -> int: ...

    def stream(
        self, article: Article, settings: RunSettings, stop: Callable[[], bool]
    ) -> Iterator[Event]: ...

    def segments(self, article: Article, settings: RunSettings) -> tuple[tuple[str, int], ...]: ...


Load = Callable[[Callable[[LoadProgress], None]], tuple[EngineLike, str]]
"""Loads the models and reports progress; returns the engine and a line that describes it."""


@dataclass(frozen=True, slots=True)
class HostStatus:
    """`fraction` is how much of the current stage is done, None if unknown."""

    state: Literal["loading", "ready", "failed"]
    text: str
    fraction: float | None = None


class ModelHost:
    """Loads the models once, in the background; after a failure `start` tries again.

    A run may use the models for `max_seconds`, a lab's measurement for `lab_seconds`. `monitor`
    knows every run in progress.
    """

    def __init__(
        self, load: Load, max_seconds: float = MAX_SECONDS, max_waiting: int = MAX_WAITING
    ) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._engine: EngineLike | None = None
        self._status = HostStatus("loading", "Preparing to load the models")
        self.queue = RunQueue(max_waiting)
        self.monitor = Monitor()
        self.max_seconds = max_seconds
        self.lab_seconds = LAB_SHARE * max_seconds

    def load_here(self) -> None:
        """Load in this thread; returns when loading is done or has failed."""
        self._run()

    def start(self) -> None:
        """Load in the background, unless the models are loading or loaded."""
        with self._lock:
            if self._engine is not None or (self._thread and self._thread.is_alive()):
                return
            self._status = HostStatus("loading", "Preparing to load the models")
            self._thread = threading.Thread(target=self._run, name="load-models", daemon=True)
            self._thread.start()

    def status(self) -> HostStatus:
        with self._lock:
            return self._status

    def engine(self) -> EngineLike | None:
        """The engine, or None before it is ready."""
        with self._lock:
            return self._engine

    def _run(self) -> None:
        try:
            engine, description = self._load(self._progress)
        except SidecarError as error:
            self._set(HostStatus("failed", str(error)))
        except Exception as error:
            self._set(HostStatus("failed", f"Loading the models failed: {error}"))
            raise
        else:
            self.queue.widen(getattr(engine, "runs_at_once", 1))
            with self._lock:
                self._engine = engine
                self._status = HostStatus("ready", description)

    def _progress(self, event: LoadProgress) -> None:
        fraction = event.done / event.total if event.total and event.done is not None else None
        self._set(HostStatus("loading", event.message, fraction))

    def _set(self, status: HostStatus) -> None:
        with self._lock:
            self._status = status


def load_engine(pair: str, precision: str, device: str | None) -> Load:
    """Loads `pair` as the command line does; torch is imported only then."""

    def load(progress: Callable[[LoadProgress], None]) -> tuple[EngineLike, str]:
        progress(LoadProgress("Starting PyTorch"))
        from sidecar_core.decoding.engine import Engine
        from sidecar_core.models.loading import load_pair

        loaded = load_pair(pair, precision=precision, device=device, progress=progress)
        return Engine(loaded), describe(loaded)

    return load


def describe(pair: Any) -> str:
    """The line about the models under the title: target, draft, precision, device."""
    return (
        f"{pair.target.name} with draft {pair.draft.name} · "
        f"{pair.target.precision}, {pair.target.device}"
    )
