"""The models behind the page: loaded in a background thread, used by one run at a time, or by as
many as the engine says (`turnstile`).

The page is up before the weights are. `ModelHost.status()` says at any moment what is happening;
`ModelHost.engine()` is the engine once it is there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from sidecar_core.errors import SidecarError
from sidecar_core.events import Event, LoadProgress
from sidecar_core.host.queue import MAX_WAITING as MAX_WAITING
from sidecar_core.host.queue import Turnstile
from sidecar_core.host.watch import Watch
from sidecar_core.settings import RunSettings

MAX_SECONDS = 600.0
"""Longest that a run may be at the models, unless the host says otherwise."""

LAB_SHARE = 6
"""A lab's measurement may take so many times as long."""


class EngineLike(Protocol):
    """What the page needs of an engine (`sidecar_core.decoding.engine.Engine`)."""

    prompts: Any

    def article_limit(self, settings: RunSettings) -> int: ...

    def stream(
        self, article: str, settings: RunSettings, stop: Callable[[], bool]
    ) -> Iterator[Event]: ...

    def segments(self, article: str, settings: RunSettings) -> tuple[tuple[str, int], ...]: ...


Load = Callable[[Callable[[LoadProgress], None]], tuple[EngineLike, str]]
"""Loads the models and reports progress; gives the engine and a line that says what it is."""


@dataclass(frozen=True, slots=True)
class HostStatus:
    """`fraction` is how much of the present stage is done, None where nobody can tell."""

    state: Literal["loading", "ready", "failed"]
    text: str
    fraction: float | None = None


class ModelHost:
    """Loads the models once, in the background; after a failure `start` tries again.

    A run ends `max_seconds` after its turn began, a lab's measurement `lab_seconds` after its first
    one did. `watch` knows of every run on them.
    """

    def __init__(
        self, load: Load, max_seconds: float = MAX_SECONDS, max_waiting: int = MAX_WAITING
    ) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._engine: EngineLike | None = None
        self._status = HostStatus("loading", "Getting ready to load the models")
        self.turnstile = Turnstile(max_waiting)
        self.watch = Watch()
        self.max_seconds = max_seconds
        self.lab_seconds = LAB_SHARE * max_seconds

    def load_here(self) -> None:
        """Load in this thread, and come back when that is done or has failed."""
        self._run()

    def start(self) -> None:
        """Begin to load unless that is under way or done."""
        with self._lock:
            if self._engine is not None or (self._thread and self._thread.is_alive()):
                return
            self._status = HostStatus("loading", "Getting ready to load the models")
            self._thread = threading.Thread(target=self._run, name="load-models", daemon=True)
            self._thread.start()

    def status(self) -> HostStatus:
        with self._lock:
            return self._status

    def engine(self) -> EngineLike | None:
        """The engine, or None while there is none."""
        with self._lock:
            return self._engine

    def _run(self) -> None:
        try:
            engine, description = self._load(self._progress)
        except SidecarError as error:
            self._set(HostStatus("failed", str(error)))
        except Exception as error:
            self._set(HostStatus("failed", f"The models could not be loaded: {error}"))
            raise
        else:
            self.turnstile.widen(getattr(engine, "runs_at_once", 1))
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
    """Loads `pair` as the command line does; torch is imported only when that happens."""

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
