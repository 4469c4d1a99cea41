"""Hugging Face's ZeroGPU: the models' work in a process that is lent a GPU for some seconds.

Import this before anything that imports torch or gradio: `spaces` must come first. Where `spaces`
is not installed, or this is no ZeroGPU machine, everything here hands back what it was given.

On ZeroGPU the models are loaded in the main thread, before the server starts, onto a CUDA device
that is only recorded; the GPU is there inside functions under `spaces.GPU`, which run in a forked
process. What goes in (the work as a function of a module, its arguments) and what comes out (events
and other values) is pickled. An exception would lose its class and be printed with its message on
the way, so failures cross as values too. A stop does not cross: the generator is closed, which
ends the other process's work at its next item.

Nothing that the work remembers comes back: what a lab's records learn there is lost here.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

try:
    import spaces
except ImportError:
    spaces = None

from sidecar_core.errors import SidecarError
from sidecar_core.events import Event, PhaseChanged, RunFinished
from sidecar_core.settings import RunSettings

log = logging.getLogger(__name__)

ON = spaces is not None and os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")
"""Whether this is a ZeroGPU machine, told as `spaces` itself tells it."""

SHORTEST, LONGEST = 15, 120
"""Seconds of GPU that are asked for. The time asked for, not the time used, must fit into what is
left of a visitor's daily quota, two minutes for visitors without an account."""

START_SECONDS = 10.0
PASS_SECONDS = 0.03
READ_SECONDS = 1e-4
"""Estimates, not measured on ZeroGPU: weights onto the GPU, one forward pass, one character."""


def run_seconds(article: str, settings: RunSettings) -> int:
    """The GPU time to ask for one run: reading, rounds of γ drafts and a pass of the target, tags.

    A round is counted as two tokens, or as one where the draft reads something unrelated.
    """
    rounds = settings.max_tokens / (1 if settings.draft_prompt == "unrelated" else 2)
    passes = rounds * (settings.gamma + 1) + 2 * 64
    return _bounded(START_SECONDS + len(article) * READ_SECONDS + passes * PASS_SECONDS)


def lab_seconds(article: str, readings: int) -> int:
    """The same for a lab: the summary, then as many readings or batches of samples."""
    whole = run_seconds(article, RunSettings(max_tokens=200)) + 64 * PASS_SECONDS * readings
    return _bounded(whole)


def _bounded(seconds: float) -> int:
    return round(min(max(seconds, SHORTEST), LONGEST))


@dataclass(frozen=True, slots=True)
class Job:
    """What crosses to the other process: `work(engine, *arguments, **options)`, a generator."""

    work: Callable[..., Iterator[Any]]
    arguments: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    seconds: int = SHORTEST


@dataclass(frozen=True, slots=True)
class Failed:
    """What crosses in place of an exception."""

    message: str


def take(
    engine: Any,
    work: Callable[..., Iterator[Any]],
    *arguments: Any,
    stop: Callable[[], bool],
    seconds: int,
    **options: Any,
) -> Generator[Any, None, None]:
    """The items of `work(engine, …, stop=stop)`, wherever the models are."""
    if isinstance(engine, GpuEngine):
        yield from engine.take(Job(work, arguments, options, seconds), stop)
    else:
        yield from work(engine, *arguments, stop=stop, **options)


def adapted(load: Callable[[Any], tuple[Any, str]]) -> Callable[[Any], tuple[Any, str]]:
    """`load`, with the engine that it gives put behind the GPU process on ZeroGPU."""
    if not ON:
        return load

    def load_here(progress: Any) -> tuple[Any, str]:
        if threading.current_thread() is not threading.main_thread():
            raise SidecarError("On ZeroGPU models are loaded at the start; restart the Space.")
        engine, description = load(progress)
        return GpuEngine(engine), description

    return load_here


class GpuEngine:
    """Stands in for an engine whose models only run in a process with a GPU.

    Made in the main thread before the server starts, so that `spaces` knows of its function then.
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.pair, self.prompts = engine.pair, engine.prompts
        self.device = str(engine.pair.target.device)
        """Asked for here, since other threads see the recorded tensors as the CPU's."""
        self._remote = spaces.GPU(duration=_seconds_of)(_task_of(engine))

    def article_limit(self, settings: RunSettings) -> int:
        return int(self._engine.article_limit(settings))

    def segments(self, article: str, settings: RunSettings) -> tuple[tuple[str, int], ...]:
        return tuple(self._engine.segments(article, settings))

    def stream(
        self, article: str, settings: RunSettings, stop: Callable[[], bool]
    ) -> Iterator[Event]:
        """The events of one run. Raises SidecarError for bad input before a GPU is asked for."""
        settings = settings.validate()
        self._engine.build_prompts(article, settings)
        work = type(self._engine).stream
        job = Job(work, (article, settings), seconds=run_seconds(article, settings))
        return self._events(job, stop)

    def _events(self, job: Job, stop: Callable[[], bool]) -> Iterator[Event]:
        """A run that was stopped ends with the events that the engine would have ended it with."""
        event: Any = None
        seconds = 0.0
        for event in self.take(job, stop):
            seconds = getattr(event, "seconds", seconds)
            yield event
        if not isinstance(event, RunFinished):
            yield PhaseChanged("done", seconds)
            yield RunFinished("cancelled", {"total": seconds}, seconds)

    def take(self, job: Job, stop: Callable[[], bool]) -> Iterator[Any]:
        """The items of a job. Raises SidecarError, also for what ZeroGPU itself refuses."""
        items = self._remote(job)
        try:
            for item in items:
                if isinstance(item, Failed):
                    raise SidecarError(item.message)
                yield item
                if stop():
                    return
        except SidecarError:
            raise
        except Exception as error:
            if (words := getattr(error, "message", None)) is None:  # not one of Gradio's
                raise
            raise SidecarError(re.sub(r"<[^>]*>", "", f"{words}").strip()) from error
        finally:
            items.close()


def _seconds_of(job: Job) -> int:
    return job.seconds


def _task_of(engine: Any) -> Callable[[Job], Iterator[Any]]:
    """The function that runs in the other process, which was forked with the engine in it."""

    def task(job: Job) -> Iterator[Any]:
        try:
            yield from job.work(engine, *job.arguments, **job.options)
        except SidecarError as error:
            yield Failed(str(error))
        except Exception as error:
            log.error("A run failed", exc_info=error)
            yield Failed(f"The run failed: {type(error).__name__}. Start it again.")

    return task
