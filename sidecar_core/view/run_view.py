"""What the page shows of one run, live or recorded: a fold of its events into the page's parts."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field

import plotly.graph_objects as go

from sidecar_core.events import Event, RunStarted, TagsFinished
from sidecar_core.prompts import Article
from sidecar_core.report import RunReport, shown
from sidecar_core.scenarios import Scenario
from sidecar_core.settings import RunSettings
from sidecar_core.view.alpha_chart import alpha_figure
from sidecar_core.view.conclusion import compared, difference, own
from sidecar_core.view.pace import CHARTS_PER_SECOND, Pace
from sidecar_core.view.render import StreamHtml, status, text, tiles
from sidecar_core.view.runs_table import RunRecord, leaks, prompt_label, runs_table
from sidecar_core.view.scenario_bars import scenario_bars
from sidecar_core.view.tag_column import column, unseen

HINT = "Flip a switch and press Start again: earlier runs stay in the chart as thin lines."
"""Shown where a scenario says what to look at."""

DRAFT_LOST = "The draft failed; the target continues alone."

KEPT = "Partial output kept. Press Start to run again."

STOPPED = f"Stopped. {KEPT}"


@dataclass(frozen=True, slots=True)
class RunView:
    """Everything on the page that a run changes. `banner` marks a recording."""

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
    """Fold of one run's events into views. `article` is None if it is not known; `compared` is what
    a recording says of the runs that it was compared with."""

    article: Article | None
    settings: RunSettings
    earlier: Sequence[RunRecord] = ()
    scenario: Scenario | None = None
    compared: str = ""
    report: RunReport = field(default_factory=RunReport)
    stream: StreamHtml = field(default_factory=StreamHtml)
    events: list[Event] = field(default_factory=list)
    _chart: go.Figure | None = None
    _changed: bool = False
    _chart_pace: Pace = field(default_factory=lambda: Pace(CHARTS_PER_SECOND))
    _columns: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        if isinstance(event, RunStarted) and not self.earlier:
            # A prefix cache hit on a tab's first run would reveal that somebody else had run the
            # same article before.
            event = dataclasses.replace(event, reused_tokens=(0, 0))
        self._changed = True
        self.report.add(event)
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
    ) -> RunView:
        """The current view; `line` replaces the status line that follows from the events."""
        stale = self._chart is None or (self._changed and self._chart_pace.due())
        if not running or stale:
            self._changed = False
            earlier = [(f"{r.label} #{r.number}", r.report.rounds) for r in self.earlier]
            self._chart = alpha_figure(self.report.rounds, earlier, prompt_label(self.settings))
        against = difference(self.report, self.settings, self.earlier)
        bars = {"alpha_bars": scenario_bars(self.settings, self.report, self.earlier)}
        return RunView(
            status=line or self.status(),
            tiles=tiles(self.report) | bars | ({"alpha_note": against} if against else {}),
            stream=self.stream.value(),
            chart=self._chart,
            sidecar=self.tags("sidecar", running),
            standalone=self.tags("standalone", running),
            runs=runs_table(self.earlier if records is None else records),
            note=self._note(running),
            running=running,
        )

    def status(self) -> dict[str, str]:
        """The current stage. The words change with the stage only; the bar moves in between."""
        report = self.report
        if report.finished:
            return status(ending(report), "done")
        match report.phase:
            case "summary" if report.draft_lost:
                share = report.emitted / self.settings.max_tokens
                return status(f"{DRAFT_LOST} {report.draft_lost}", "busy", share)
            case "summary":
                share = report.emitted / self.settings.max_tokens
                return status("The draft proposes tokens; the target judges them.", "busy", share)
            case "tagging":
                return status("The sidecar and the standalone tagger take turns.", "busy")
            case _:
                model, progress = next(reversed(report.prefill.items()), ("target", None))
                share = progress.done / progress.total if progress and progress.total else 0.0
                return status(f"The {model} reads the prompt.", "busy", share)

    def record(self, number: int) -> RunRecord:
        return RunRecord(
            settings=self.settings,
            report=self.report,
            number=number,
            article=self.article.key if self.article else "",
            leaks=leaks(self.report, self.settings, self._text),
        )

    @property
    def _text(self) -> str | None:
        return self.article.text if self.article else None

    def tags(self, tagger: str, running: bool) -> dict[str, str]:
        """The column of this tagger."""
        return self._columns.get(tagger) or self._column(tagger, running)

    def _column(self, tagger: str, running: bool) -> dict[str, str]:
        report, settings = self.report, self.settings
        return column(
            report.taggers[tagger],
            report.text,
            self._text,
            settings.task,
            running=running,
            unseen=unseen(tagger, settings),
            find=True,
        )

    def comparison(self) -> str:
        """What changed against earlier runs; "" without any."""
        if self.compared:
            return self.compared
        return compared(self.settings, self.report, self.earlier, self.scenario)

    def conclusion(self) -> str:
        """What the run ended in; "" until it has."""
        if not self.report.finished:
            return ""
        said = self.comparison()
        alone = own(self.settings, self.report, self._text, alpha=not said)
        parts = (alone, said) if self.scenario and self.scenario.about_tags else (said, alone)
        return " ".join(filter(None, parts))

    def _note(self, running: bool) -> str:
        words = "" if running else self.conclusion()
        if self.scenario is None:
            return text(words) or HINT
        if words and self.scenario.needs_baseline and not self.comparison():
            words += " Run scenario 1 to compare."
        return f"<b>{text(self.scenario.title)}.</b> {text(words or self.scenario.look)}"


def ending(report: RunReport) -> str:
    """How a finished run ended, for the status line."""
    assert report.finished is not None
    if report.finished.reason == "cancelled":
        return STOPPED
    words = (
        f"Done in {report.finished.seconds:.1f} s: {report.emitted} tokens, α {shown(report.alpha)}"
    )
    started: RunStarted | None = report.started
    if started and min(started.reused_tokens) > 0:
        words += "; prefix cache hit"
    if report.draft_lost:
        words += "; the draft failed, and the target continued alone"
    if report.finished.reason == "length":
        words += "; the summary was cut at the token limit"
    return words + "."
