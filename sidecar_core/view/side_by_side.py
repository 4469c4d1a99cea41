"""Two recorded runs in step, round by round: both summaries, both α lines, both tag columns.

Step 0 shows nothing; step n the first n rounds of each; the last two steps the finished summaries
and then the tags. A run with fewer rounds waits for the other, so both finish together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from sidecar_core.events import Event, SummaryFinished
from sidecar_core.recording import Recording
from sidecar_core.scenarios import find_scenario
from sidecar_core.view.alpha_chart import two_alphas
from sidecar_core.view.conclusion import signed, whole
from sidecar_core.view.player import fold, steps
from sidecar_core.view.render import text
from sidecar_core.view.runs_table import RunRecord, details, prompt_label

SECONDS = 0.4
"""A round is shown for so long."""

Wait = Callable[[float], bool]
"""Waits that many seconds; returns True early if they are to stop."""


@dataclass(frozen=True, slots=True)
class SideView:
    """One run: HTML of its heading, and values for the summary's and the tags' templates."""

    head: str
    stream: dict[str, str]
    tags: dict[str, str]


@dataclass(frozen=True, slots=True)
class TwoViews:
    """What the page shows of two runs."""

    left: SideView
    right: SideView
    chart: go.Figure
    line: str
    running: bool


@dataclass(slots=True)
class TwoRuns:
    """What one tab compares, and the step that it is at."""

    left: Recording
    right: Recording
    at: int = 0

    @property
    def rounds(self) -> int:
        return max(len(_rounds(r.events)) for r in (self.left, self.right))

    @property
    def last(self) -> int:
        """The step that shows the tags."""
        return self.rounds + 2

    def events(self, recording: Recording) -> list[Event]:
        """The events of one of the two that this step shows."""
        stops = [0, *_rounds(recording.events)]
        after = [n + 1 for n, e in enumerate(recording.events) if isinstance(e, SummaryFinished)]
        if self.at >= self.last:
            end = len(recording.events)
        elif self.at > self.rounds:
            end = after[0] if after else stops[-1]
        else:
            end = stops[min(self.at, len(stops) - 1)]
        return list(recording.events[:end])


def play(pair: TwoRuns, wait: Wait) -> Iterator[TwoViews]:
    """Views from their step to the end; from the beginning if it is at the end. If `wait`
    ends it early, a later call continues from there."""
    if pair.at >= pair.last:
        pair.at = 0
    while pair.at < pair.last:
        pair.at += 1
        yield view(pair, running=pair.at < pair.last)
        if pair.at < pair.last and wait(SECONDS):
            yield view(pair, running=False)
            return


def step(pair: TwoRuns, rounds: int) -> TwoViews:
    """So many steps forward, or back if negative."""
    pair.at = min(max(pair.at + rounds, 0), pair.last)
    return view(pair, running=False)


def view(pair: TwoRuns, running: bool) -> TwoViews:
    """The two at their step."""
    over = pair.at >= pair.last
    left, right = (fold(r, (), pair.events(r)) for r in (pair.left, pair.right))
    names = [prompt_label(r.settings) for r in (pair.left, pair.right)]
    if names[0] == names[1]:
        names = ["left", "right"]
    return TwoViews(
        SideView(_head(pair.left, "solid"), left.stream.value(), left.tags("sidecar", not over)),
        SideView(
            _head(pair.right, "dashed"), right.stream.value(), right.tags("sidecar", not over)
        ),
        two_alphas((names[0], left.report.rounds), (names[1], right.report.rounds)),
        text(conclusion(pair) if over else _where(pair)),
        running,
    )


def conclusion(pair: TwoRuns) -> str:
    """What the two came to, in numbers."""
    left, right = (fold(r, (), r.events).record(0) for r in (pair.left, pair.right))
    if None not in (pair.left.article, pair.right.article) and left.article != right.article:
        return "The two runs are on different articles."
    if not (whole(left.report) and whole(right.report)):
        return "One of the two runs ended before its summary did."
    return " ".join(filter(None, (_alphas(left, right), _text(left, right), _tags(left, right))))


def _alphas(left: RunRecord, right: RunRecord) -> str:
    if left.report.alpha is None or right.report.alpha is None:
        return ""
    before, after = round(left.report.alpha, 3), round(right.report.alpha, 3)
    return f"α is {before:.3f} on the left and {after:.3f} on the right ({signed(after - before)})."


def _text(left: RunRecord, right: RunRecord) -> str:
    if left.report.ids == right.report.ids:
        return "The text is the same, token for token."
    return "The two texts differ."


def _tags(left: RunRecord, right: RunRecord) -> str:
    done = [run.report.taggers["sidecar"].finished for run in (left, right)]
    if done[0] is None or done[1] is None:
        return ""
    said = (
        f"The sidecar attends to {done[0].kv_tokens:,} tokens on the left and "
        f"{done[1].kv_tokens:,} on the right"
    )
    if "–" in (left.leaks, right.leaks):
        return said + "."
    return (
        f"{said}; {left.leaks} of {len(done[0].tags)} and {right.leaks} of {len(done[1].tags)} "
        "tags have words that are only in the document."
    )


def _rounds(events: Sequence[Event]) -> list[int]:
    """Behind the last event of each round."""
    summary = next((n for n, e in enumerate(events) if isinstance(e, SummaryFinished)), None)
    stops = steps(events)
    if summary is None:
        return stops
    return [*(n for n in stops if n <= summary), summary]


def _head(recording: Recording, form: str) -> str:
    """What the run is called and what it was, with its line in the chart."""
    scenario = find_scenario(recording.header.scenario)
    name = scenario.title if scenario else prompt_label(recording.settings).capitalize()
    about = filter(None, (recording.header.title, details(recording.settings)))
    return (
        f'<h3><i class="line {form}" aria-hidden="true"></i> {text(name)}</h3>'
        f'<p class="sub"><bdi>{text(", ".join(about))}</bdi></p>'
    )


def _where(pair: TwoRuns) -> str:
    if pair.at > pair.rounds:
        return "Both summaries are finished; the sidecars write tags."
    return f"Round {pair.at} of {pair.rounds}."
