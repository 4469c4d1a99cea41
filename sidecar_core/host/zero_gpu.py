"""Hugging Face's ZeroGPU: the models run in a child process that gets a GPU for some seconds.

Import this module before anything that imports torch or gradio: `spaces` must come first. Without
`spaces`, or on any other machine, everything here returns its input unchanged.

On ZeroGPU the models are loaded in the main thread, before the server starts, onto an emulated CUDA
device. A real GPU exists only inside functions decorated with `spaces.GPU`, which run in a forked
process. Arguments (the work as a module-level function) and results (events and other values) are
pickled. An exception would lose its class on the way and be printed with its message, so failures
cross as values too. A stop does not cross: closing the generator ends the child's work at its next
item.

State does not come back: what a lab's records learn in the child process is lost.
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
from sidecar_core.prompts import Article, check_text
from sidecar_core.settings import COMPARED_GAMMA, RunSettings

log = logging.getLogger(__name__)

ON = spaces is not None and os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")
"""Whether this is a ZeroGPU machine, by the test that `spaces` itself uses."""

SHORTEST, LONGEST = 15, 120
"""Limits of the GPU seconds to request. The requested time, not the used time, must fit into what
is left of a visitor's daily quota: two minutes for visitors without an account."""

START_SECONDS = 10.0
PASS_SECONDS = 0.03
READ_SECONDS = 1e-4
"""Estimates, not measured on ZeroGPU: moving the weights, a forward pass, reading a character."""


def run_seconds(characters: int, settings: RunSettings) -> int:
    """GPU seconds to request for one run on an article of that length: prefill, rounds of γ drafts
    and one target pass, tags.

    A round is assumed to yield two tokens, or one if the draft reads an unrelated prompt, and to
    draft COMPARED_GAMMA tokens if γ is "auto".
    """
    rounds = settings.max_tokens / (1 if settings.draft_prompt == "unrelated" else 2)
    drafts = COMPARED_GAMMA if settings.gamma == "auto" else settings.gamma
    passes = rounds * (drafts + 1) + 2 * 64
    return _bounded(START_SECONDS + characters * READ_SECONDS + passes * PASS_SECONDS)


def lab_seconds(characters: int, readings: int) -> int:
    """The same for a lab: one summary, then `readings` readings or batches of samples."""
    whole = run_seconds(characters, RunSettings(max_tokens=200)) + 64 * PASS_SECONDS * readings
    return _bounded(whole)


def _bounded(seconds: float) -> int:
    return round(min(max(seconds, SHORTEST), LONGEST))


@dataclass(frozen=True, slots=True)
class Job:
    """What is sent to the child process: `work(engine, *arguments, **options)`, a generator."""

    work: Callable[..., Iterator[Any]]
    arguments: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    seconds: int = SHORTEST


@dataclass(frozen=True, slots=True)
class Failed:
    """What comes back in place of an exception."""

    message: str


def take(
    engine: Any,
    work: Callable[..., Iterator[Any]],
    *arguments: Any,
    stop: Callable[[], bool],
    seconds: int,
    **options: Any,
) -> Generator[Any, None, None]:
    """The items of `work(engine, …, stop=stop)`, in whichever process the models run."""
    if isinstance(engine, GpuEngine):
        yield from engine.take(Job(work, arguments, options, seconds), stop)
    else:
        yield from work(engine, *arguments, stop=stop, **options)


def adapted(load: Callable[[Any], tuple[Any, str]]) -> Callable[[Any], tuple[Any, str]]:
    """`load`; on ZeroGPU its engine is wrapped in a GpuEngine."""
    if not ON:
        return load

    def load_here(progress: Any) -> tuple[Any, str]:
        if threading.current_thread() is not threading.main_thread():
            raise SidecarError(
                "On ZeroGPU the models can be loaded at startup only. Restart the Space."
            )
        engine, description = load(progress)
        return GpuEngine(engine), description

    return load_here


class GpuEngine:
    """Stands in for an engine whose models run only in a process with a GPU.

    Create it in the main thread before the server starts: `spaces` registers its function then.
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.pair, self.prompts = engine.pair, engine.prompts
        self.device = str(engine.pair.target.device)
        """Read here, because other threads see the emulated tensors on the CPU."""
        self._remote = spaces.GPU(duration=_seconds_of)(_task_of(engine))

    def article_limit(self, settings: RunSettings) -> int:
        return int(self._engine.article_limit(settings))

    def segments(self, article: Article, settings: RunSettings) -> tuple[tuple[str, int], ...]:
        return tuple(self._engine.segments(article, settings))

    def stream(
        self, article: str | Article, settings: RunSettings, stop: Callable[[], bool]
    ) -> Iterator[Event]:
        """The events of one run. Raises BadInput before a GPU is requested."""
        settings, article = settings.validate(), check_text(article)
        self._engine.build_prompts(article, settings)
        work = type(self._engine).stream
        job = Job(work, (article, settings), seconds=run_seconds(len(article.text), settings))
        return self._events(job, stop)

    def _events(self, job: Job, stop: Callable[[], bool]) -> Iterator[Event]:
        """Ends a stopped run with the same events as the engine would."""
        event: Any = None
        seconds = 0.0
        for event in self.take(job, stop):
            seconds = getattr(event, "seconds", seconds)
            yield event
        if not isinstance(event, RunFinished):
            yield PhaseChanged("done", seconds)
            yield RunFinished("cancelled", {"total": seconds}, seconds)

    def take(self, job: Job, stop: Callable[[], bool]) -> Iterator[Any]:
        """The items of a job. Raises SidecarError, also if ZeroGPU refuses the request."""
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
    """The function for the child process, which is forked with the engine in it."""

    def task(job: Job) -> Iterator[Any]:
        try:
            yield from job.work(engine, *job.arguments, **job.options)
        except SidecarError as error:
            yield Failed(str(error))
        except Exception as error:
            log.error("A run failed", exc_info=error)
            yield Failed(f"The run failed: {type(error).__name__}. Start it again.")

    return task
