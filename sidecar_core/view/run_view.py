"""What the page shows of one run: a fold of its events, live or recorded, into the page's parts."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field

import plotly.graph_objects as go

from sidecar_core.events import Event, FinishReason, RunStarted, TagsFinished
from sidecar_core.prompts import article_key
from sidecar_core.report import RunReport, shown
from sidecar_core.scenarios import Scenario
from sidecar_core.settings import RunSettings
from sidecar_core.view.alpha_chart import Series, alpha_figure
from sidecar_core.view.conclusion import Measured, outcome
from sidecar_core.view.pace import CHARTS_PER_SECOND, Pace
from sidecar_core.view.render import TokenStream, status, text, tiles
from sidecar_core.view.runs_table import RunRecord, leaks, prompt_label, runs_table
from sidecar_core.view.tag_column import column

HINT = "Flip a switch and start again: earlier runs stay in the chart as thin lines."
"""Where a scenario would say what to look at."""

DRAFT_LOST = "The draft failed; the target goes on alone."

STAYS = "What was written so far stays; Start begins anew."

STOPPED = f"Stopped. {STAYS}"


@dataclass(frozen=True, slots=True)
class RunView:
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
    ) -> RunView:
        """What to show now; `line` stands in for the status that follows from the events."""
        stale = self._chart is None or (self._changed and self._chart_pace.due())
        if not running or stale:
            self._changed = False
            ghosts = [(f"{r.label} #{r.number}", r.series) for r in self.earlier]
            self._chart = alpha_figure(self.series, ghosts, prompt_label(self.settings))
        return RunView(
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
