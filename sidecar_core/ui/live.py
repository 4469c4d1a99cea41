"""One visitor's run as a stream of views: events in, what the page shows out.

`run` waits for the models and for its turn, lets the engine work in a thread of its own, and gives
a `View` at most ten times a second, whatever the engine does. It ends early when the session's
`stop` is set or the generator is closed; the engine then ends within one forward pass, and only
then is the next run let in. A SidecarError comes through after a last view.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import plotly.graph_objects as go

from sidecar_core.errors import SidecarError
from sidecar_core.events import (
    Event,
    FinishReason,
    RunStarted,
    TagsFinished,
)
from sidecar_core.recording import record
from sidecar_core.report import RunReport, shown
from sidecar_core.scenarios import Scenario
from sidecar_core.settings import MAX_ARTICLE_CHARS, RunSettings
from sidecar_core.ui.figures import Series, alpha_figure
from sidecar_core.ui.model_host import EngineLike, ModelHost
from sidecar_core.ui.render import TokenStream, status, text, tiles
from sidecar_core.ui.runs import leaks, prompt_label, runs_table
from sidecar_core.ui.scenarios import Measured, outcome
from sidecar_core.ui.session import RunRecord, Session, article_key
from sidecar_core.ui.tags import column
from sidecar_core.ui.throttle import CHARTS_PER_SECOND, UPDATES_PER_SECOND, Pace

log = logging.getLogger(__name__)

HINT = "Flip a switch and start again: earlier runs stay in the chart as thin lines."
"""Where a scenario would say what to look at."""

STOPPED = "Stopped. What was written so far stays; Start begins anew."


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
    _chart_pace: Pace = field(default_factory=lambda: Pace(CHARTS_PER_SECOND))
    _columns: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, event: Event) -> None:
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
        if not running or self._chart is None or self._chart_pace.due():
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
            case "summary":
                share = report.emitted / self.settings.max_tokens
                return status("The draft proposes, the target judges.", "busy", share)
            case "tagging":
                return status("Both taggers write their hashtags in turn.", "busy")
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
            leaks=leaks(self.report, self.document),
            report=self.report,
            series=self.series,
        )

    def _column(self, tagger: str, running: bool) -> dict[str, str]:
        return column(self.report.taggers[tagger], self.report.text, self.document, running)

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
) -> Iterator[View]:
    """Views of one run, the last one with `running` false. Raises SidecarError, see above."""
    check_size(article)
    settings.validate()
    stop = session.take()
    live = LiveRun(article, settings, session.on(article), scenario)
    worker: _Worker | None = None
    ticket = None
    try:
        ticket = host.turnstile.enter()
        engine = None
        for engine, line in wait_for_turn(host, ticket, stop):
            if engine is None:
                yield live.view(line)
        if engine is None:
            yield live.view(status(STOPPED, "done"), running=False)
            return
        events = engine.stream(article, settings, stop.is_set)
        worker = _Worker(events, host, ticket, session)
        yield live.view()
        yield from _views(live, worker)
        session.counted += 1
        session.keep(live.record(session.counted))
        if live.report.started:
            session.recording = record(live.events, scenario.key if scenario else "")
            session.recorded = article_key(article)
        yield live.view(running=False, records=session.on(article))
    except SidecarError as error:
        yield live.view(status(str(error), "error"), running=False)
        raise
    finally:
        stop.set()
        if worker is None:
            host.turnstile.leave(ticket)
            session.busy.release()


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
    """Takes the engine's events in a thread; `queue` ends with None or the exception."""

    def __init__(
        self, events: Iterator[Event], host: ModelHost, ticket: object, session: Session
    ) -> None:
        self.queue: queue.SimpleQueue[Event | Exception | None] = queue.SimpleQueue()
        self._events, self._host, self._ticket, self._session = events, host, ticket, session
        threading.Thread(target=self._work, name="run", daemon=True).start()

    def _work(self) -> None:
        end: Exception | None = None
        try:
            for event in self._events:
                self.queue.put(event)
        except Exception as error:
            end = error
        finally:
            self._host.turnstile.leave(self._ticket)
            self._session.busy.release()
            self.queue.put(end)


def wait_for_turn(
    host: ModelHost, ticket: object, stop: threading.Event
) -> Iterator[tuple[EngineLike | None, dict[str, str]]]:
    """Until it is this ticket's turn and the models are there; nothing with an engine once
    `stop` is set. Raises SidecarError when they cannot be loaded."""
    host.start()
    while not stop.is_set():
        engine = host.engine()
        if engine is None:
            now = host.status()
            if now.state == "failed":
                raise SidecarError(now.text)
            yield None, status(f"{now.text}. Your run begins by itself.", "busy", now.fraction)
        elif ahead := host.turnstile.ahead(ticket):
            others = "one run is" if ahead == 1 else f"{ahead} runs are"
            yield None, status(f"Waiting for the models: {others} before yours.", "busy")
        else:
            yield engine, {}
            return
        stop.wait(0.25)


def _views(live: LiveRun, worker: _Worker) -> Iterator[View]:
    pace = Pace(UPDATES_PER_SECOND)
    quiet_since = time.monotonic()
    changed = False
    while True:
        try:
            event = worker.queue.get(timeout=pace.wait() if changed else 0.5)
        except queue.Empty:
            pass
        else:
            if isinstance(event, SidecarError):
                raise event
            if isinstance(event, Exception):
                log.error("A run failed", exc_info=event)
                raise SidecarError(
                    f"The run failed: {type(event).__name__}. Start it again."
                ) from event
            if event is None:
                return
            live.add(event)
            changed = True
        if (changed and pace.due()) or time.monotonic() - quiet_since > 1:
            yield live.view()
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
    if reason == "length":
        words += "; the summary was cut at the token limit"
    return words + "."
