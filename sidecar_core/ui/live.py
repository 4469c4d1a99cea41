"""One visitor's run as a stream of views: events in, what the page shows out.

`run` waits for the models and for its turn, lets the engine work in a thread of its own, and gives
a `View` at most ten times a second, whatever the engine does. It ends early when the session's
`stop` is set, the generator is closed, or the host's time limit is over; the engine then ends
within one forward pass, and only then is the next run let in. A SidecarError comes through after a
last view.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial

import plotly.graph_objects as go

from sidecar_core.errors import SidecarError
from sidecar_core.events import (
    Event,
    FinishReason,
    RunStarted,
    TagsFinished,
)
from sidecar_core.prompts import clean
from sidecar_core.recording import record
from sidecar_core.report import RunReport, shown
from sidecar_core.scenarios import Scenario
from sidecar_core.settings import MAX_ARTICLE_CHARS, RunSettings
from sidecar_core.ui.figures import Series, alpha_figure
from sidecar_core.ui.model_host import ModelHost
from sidecar_core.ui.render import TokenStream, status, text, tiles
from sidecar_core.ui.runs import leaks, prompt_label, runs_table
from sidecar_core.ui.scenarios import Measured, outcome
from sidecar_core.ui.session import RunRecord, Session, article_key
from sidecar_core.ui.tags import column
from sidecar_core.ui.throttle import CHARTS_PER_SECOND, UPDATES_PER_SECOND, Pace
from sidecar_core.ui.turn import Turn, in_words, open_turn

HINT = "Flip a switch and start again: earlier runs stay in the chart as thin lines."
"""Where a scenario would say what to look at."""

DRAFT_LOST = "The draft failed; the target goes on alone."

STAYS = "What was written so far stays; Start begins anew."

STOPPED = f"Stopped. {STAYS}"

NOT_BEGUN = "Stopped before it began."

NICE = 10
"""Of the threads that compute, on Unix's scale from 0 to 19."""

STOPPING = status("Stopping after this step …", "busy")


@dataclass(frozen=True, slots=True)
class View:
    """Everything on the page that a run changes. `banner` says so where it is a recorded one."""

    status: dict[str, str]
    tiles: dict[str, str]
    stream: dict[str, str]
    chart: go.Figure
    sidecar: dict[str, str]
    standalone: dict[str, str]
    runs: str
    note: str
    running: bool
    banner: str = ""


@dataclass(slots=True)
class LiveRun:
    """Fold of one run's events into views. `document` is None where it is not known."""

    document: str | None
    settings: RunSettings
    earlier: Sequence[RunRecord] = ()
    scenario: Scenario | None = None
    report: RunReport = field(default_factory=RunReport)
    series: Series = field(default_factory=Series)
    stream: TokenStream = field(default_factory=TokenStream)
    events: list[Event] = field(default_factory=list)
    _chart: go.Figure | None = None
    _changed: bool = False
    _chart_pace: Pace = field(default_factory=lambda: Pace(CHARTS_PER_SECOND))
    _columns: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        if isinstance(event, RunStarted) and not self.earlier:
            # Whoever runs an article for the first time is not told that somebody else did before.
            event = dataclasses.replace(event, reused_tokens=(0, 0))
        self._changed = True
        self.report.add(event)
        self.series.add(event)
        self.stream.add(event)
        self.events.append(event)
        if isinstance(event, TagsFinished) and event.task in list(self.report.tasks)[:1]:
            self._columns[event.tagger] = self._column(event.tagger, running=True)

    def view(
        self,
        line: dict[str, str] | None = None,
        *,
        running: bool = True,
        records: Sequence[RunRecord] | None = None,
    ) -> View:
        """What to show now; `line` stands in for the status that follows from the events."""
        stale = self._chart is None or (self._changed and self._chart_pace.due())
        if not running or stale:
            self._changed = False
            ghosts = [(f"{r.label} #{r.number}", r.series) for r in self.earlier]
            self._chart = alpha_figure(self.series, ghosts, prompt_label(self.settings))
        return View(
            status=line or self.status(),
            tiles=tiles(self.report),
            stream=self.stream.value(),
            chart=self._chart,
            sidecar=self._columns.get("sidecar") or self._column("sidecar", running),
            standalone=self._columns.get("standalone") or self._column("standalone", running),
            runs=runs_table(self.earlier if records is None else records),
            note=self._note(running),
            running=running,
        )

    def status(self) -> dict[str, str]:
        """The stage in words. They change with the stage only; the bar moves in between."""
        report = self.report
        if report.finished:
            return status(ending(report), "done")
        match report.phase:
            case "summary" if report.draft_lost:
                share = report.emitted / self.settings.max_tokens
                return status(f"{DRAFT_LOST} {report.draft_lost}", "busy", share)
            case "summary":
                share = report.emitted / self.settings.max_tokens
                return status("The draft proposes, the target judges.", "busy", share)
            case "tagging":
                return status("The sidecar and the standalone tagger write in turn.", "busy")
            case _:
                model, progress = next(reversed(report.prefill.items()), ("target", None))
                share = progress.done / progress.total if progress and progress.total else 0.0
                return status(f"The {model} reads the prompt.", "busy", share)

    def record(self, number: int) -> RunRecord:
        return RunRecord(
            number=number,
            article=article_key(self.document or ""),
            settings=self.settings,
            label=prompt_label(self.settings),
            leaks=leaks(self.report, self.settings, self.document),
            report=self.report,
            series=self.series,
        )

    def _column(self, tagger: str, running: bool) -> dict[str, str]:
        report, settings = self.report, self.settings
        return column(
            report.taggers[tagger], report.text, self.document, settings.task, running=running
        )

    def _note(self, running: bool) -> str:
        if self.scenario is None:
            return HINT
        words = self.scenario.look
        if not running and self.document is not None:
            before = [Measured(r.settings, r.report) for r in self.earlier]
            words = outcome(self.scenario, self.settings, self.report, before, self.document)
        return f"<b>{text(self.scenario.title)}.</b> {text(words)}"


def run(
    host: ModelHost,
    session: Session,
    article: str,
    settings: RunSettings,
    scenario: Scenario | None = None,
    visitor: str | None = None,
) -> Iterator[View]:
    """Views of one run, the last one with `running` false. Raises SidecarError, see above.

    `visitor` names who asks: one visitor has one place at the models or in the line.
    """
    for look in follow(host, session, article, settings, scenario, visitor):
        yield look()


def follow(
    host: ModelHost,
    session: Session,
    article: str,
    settings: RunSettings,
    scenario: Scenario | None = None,
    visitor: str | None = None,
) -> Iterator[Callable[[], View]]:
    """The same for who may not want to look: yields what makes the view, which has its cost."""
    with host.watch.open("run") as watched:
        check_size(article)
        settings.validate()
        with open_turn(host, session, watched, visitor) as turn:
            session.recording = None  # until there is one of what is shown now
            live = LiveRun(clean(article), settings, session.on(article), scenario)
            turn.figures(live.report)
            try:
                with in_words("run"):
                    yield from _run(turn, live, session, article)
            except SidecarError as error:
                yield partial(live.view, status(str(error), "error"), running=False)
                raise


def _run(turn: Turn, live: LiveRun, session: Session, article: str) -> Iterator[Callable[[], View]]:
    for line in turn.wait():
        yield partial(live.view, line)
    if turn.engine is None:
        yield partial(live.view, status(NOT_BEGUN, "done"), running=False)
        return
    events = turn.engine.stream(article, live.settings, turn.limit)
    turn.begin()
    worker = _Worker(events, turn)
    yield live.view
    yield from _looks(live, worker, turn)
    session.keep(live.record(session.next_number(article)))
    if live.report.started:
        key = live.scenario.key if live.scenario else ""
        session.recording = record(live.events, key)
        session.recorded = article_key(article)
    ending = status(f"{turn.limit.words} {STAYS}", "done") if turn.limit.over else None
    yield partial(live.view, ending, running=False, records=session.on(article))


def check_size(article: str) -> None:
    """Refuses what no tokenizer should have to look at. Raises SidecarError."""
    if not isinstance(article, str) or not article.strip():
        raise SidecarError("The article is empty. Paste some text or choose an example.")
    if len(article) > MAX_ARTICLE_CHARS:
        raise SidecarError(
            f"The article has {len(article):,} characters; the limit is {MAX_ARTICLE_CHARS:,}. "
            "Paste a shorter one."
        )


class _Worker:
    """Takes the engine's events in a thread; `queue` ends with None or the exception.

    The turn is over when the engine's last forward pass is.
    """

    def __init__(self, events: Iterator[Event], turn: Turn) -> None:
        self.queue: queue.SimpleQueue[Event | Exception | None] = queue.SimpleQueue()
        self._events, self._turn = events, turn
        # The copied context tells ZeroGPU whose request this is.
        work = copy_context().run
        thread = threading.Thread(target=work, args=(self._work,), name="run", daemon=True)
        turn.keep()
        try:
            thread.start()
        except RuntimeError:  # no thread to be had
            turn.release()
            raise

    def _work(self) -> None:
        yield_to_the_page()
        end: Exception | None = None
        try:
            for event in self._events:
                self.queue.put(event)
        except Exception as error:
            end = error
        finally:
            self._turn.release()
            self.queue.put(end)


def yield_to_the_page() -> None:
    """Let the page's own threads go before this one, and before those that torch starts for it, so
    that other visitors' pages open while a run keeps every core busy."""
    if sys.platform == "linux":  # where a priority can be a thread's own
        thread = (os.PRIO_PROCESS, threading.get_native_id())
        with contextlib.suppress(OSError):
            os.setpriority(*thread, max(NICE, os.getpriority(*thread)))


def _looks(live: LiveRun, worker: _Worker, turn: Turn) -> Iterator[Callable[[], View]]:
    pace = Pace(UPDATES_PER_SECOND)
    quiet_since = time.monotonic()
    changed = False
    while True:
        try:
            event = worker.queue.get(timeout=pace.wait() if changed else 0.5)
        except queue.Empty:
            pass
        else:
            if isinstance(event, Exception):
                raise event
            if event is None:
                return
            live.add(event)
            changed = True
        if (changed and pace.due()) or time.monotonic() - quiet_since > 0.5:
            yield partial(live.view, STOPPING if turn.stop.is_set() else None)
            changed, quiet_since = False, time.monotonic()


def ending(report: RunReport) -> str:
    """How the run ended, for the status line."""
    assert report.finished is not None
    reason: FinishReason = report.finished.reason
    if reason == "cancelled":
        return STOPPED
    words = (
        f"Done in {report.finished.seconds:.1f} s: {report.emitted} tokens, α {shown(report.alpha)}"
    )
    started: RunStarted | None = report.started
    if started and min(started.reused_tokens) > 0:
        words += "; the article was in memory from before"
    if report.draft_lost:
        words += "; the draft failed on the way, and the target went on alone"
    if reason == "length":
        words += "; the summary was cut at the token limit"
    return words + "."
