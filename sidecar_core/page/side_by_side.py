"""Two runs in step on the page: recordings, or this tab's own runs on the article that is shown.

It needs no model and no place in the queue; the server's threads are those of the recordings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gradio as gr

from sidecar_core.errors import BadInput, Busy
from sidecar_core.host.session import Session, Tab
from sidecar_core.page import controls, words
from sidecar_core.page.edge import QUIET, as_gradio_errors, html
from sidecar_core.page.recordings import AT_ONCE, Recordings
from sidecar_core.prompts import Article
from sidecar_core.recording import Recording
from sidecar_core.view.alpha_chart import two_alphas
from sidecar_core.view.runs_table import details
from sidecar_core.view.side_by_side import TwoRuns, TwoViews, play, step

INTRO = """
<h2>Side by side</h2>
<p class="sub">Two runs in step, round by round: recordings, or your own runs on the article above.
</p>
"""

PAIRS = (
    ("Suffix: visible | masked", "suffix-visible", "suffix-masked"),
    ("Document: attended | masked", "document-attended", "document-masked"),
)
"""Buttons, each with the scenarios that it shows left and right."""


class Compared(Tab):
    """What one tab compares."""

    def __init__(self) -> None:
        super().__init__()
        self.pair: TwoRuns | None = None
        self.names: tuple[str, str] = ("", "")


class SideBySide:
    """The components and their handlers. A pair takes one of the recordings' places."""

    def __init__(self, recordings: Recordings, article: Any, page: Any) -> None:
        self.shelf, self.places = recordings.known, recordings.places
        self.scenes = {r.header.scenario: r for r, _ in recordings.story}
        self.article, self.page = article, page

    def build(self, runs: Any) -> None:
        """`runs` is the page's table of runs: the lists follow it."""
        self.session = gr.State(Compared())
        names = list(self.shelf.found)
        first = self._ready(*PAIRS[0][1:]) or (None, None)
        html(INTRO, elem_classes="head")
        with gr.Row(elem_id="pair-choice"):
            self.left = _choice("Left", names, first[0], "pair-left")
            self.right = _choice("Right", names, first[1], "pair-right")
        with gr.Row(elem_id="pair-player"):
            self.play = gr.Button("Play", variant="primary", size="sm", min_width=70)
            self.stop = gr.Button("Pause", interactive=False, size="sm", min_width=70)
            self.back = gr.Button("‹ round", size="sm", min_width=70)
            self.forward = gr.Button("round ›", size="sm", min_width=70)
            self.pairs = [
                gr.Button(name, size="sm", min_width=160, visible=bool(self._ready(*keys)))
                for name, *keys in PAIRS
            ]
        self.line = html("", html_template=words.NOTE, elem_id="pair-line")
        self.chart = gr.Plot(
            two_alphas(("", ()), ("", ())), show_label=False, container=False, elem_id="pair-chart"
        )
        self.sides = []
        with gr.Row(elem_id="pair"):
            for name in ("left", "right"):
                with gr.Column(elem_id=f"pair-{name}-card", elem_classes="card", min_width=260):
                    head = html("", elem_classes="head")
                    empty = {"done": "", "pending": ""}
                    stream = html(empty, html_template=words.PAIR_STREAM)
                    tags = html("", html_template=words.PAIR_TAGS)
                    self.sides += [head, stream, tags]
        self._wire(runs)

    def _wire(self, runs: Any) -> None:
        shown = [self.line, self.chart, *self.sides, self.play, self.stop]
        asked = [self.session, self.page, self.article, self.left, self.right]
        playing: dict[str, Any] = {"trigger_mode": "once", "concurrency_limit": None, **QUIET}
        self.play.click(self.on_play, asked, shown, **playing)
        controls.stops(self.stop, self.session)
        for button, by in ((self.back, -1), (self.forward, 1)):
            button.click(self._stepping(by), asked, shown, **QUIET)
        for button, (_, left, right) in zip(self.pairs, PAIRS, strict=True):
            button.click(
                lambda left=left, right=right: self._ready(left, right),
                None,
                [self.left, self.right],
                **QUIET,
            ).then(self.on_play, asked, shown, **playing)
        runs.change(
            self.on_runs, [self.page, self.article, self.left, self.right],
            [self.left, self.right], **QUIET,
        )  # fmt: skip

    # Handlers

    def on_play(
        self, session: Compared, page: Session, article: str, left: str, right: str
    ) -> Iterator[tuple[Any, ...]]:
        """From where it was held, or from the beginning."""
        with as_gradio_errors():
            stop = session.take("comparison")
            try:
                if not self.places.acquire(blocking=False):
                    raise Busy(f"{AT_ONCE} recordings are playing. Try again in a minute.")
                try:
                    pair = self._pair(session, page, article, left, right)
                    for seen in play(pair, stop.wait):
                        yield _values(seen)
                finally:
                    self.places.release()
            finally:
                session.busy.release()

    def _stepping(self, by: int) -> Callable[..., tuple[Any, ...]]:
        def on_step(
            session: Compared, page: Session, article: str, left: str, right: str
        ) -> tuple[Any, ...]:
            with as_gradio_errors():
                if session.busy.locked():
                    raise BadInput("Pause the comparison first.")
                return _values(step(self._pair(session, page, article, left, right), by))

        return on_step

    def on_runs(self, page: Session, article: str, left: str, right: str) -> tuple[Any, Any]:
        """Both lists, with this tab's runs on the article first."""
        names = list(self._found(page, article))
        return tuple(
            gr.Dropdown(names, value=value if value in names else next(iter(names), None))
            for value in (left, right)
        )

    def _found(self, page: Session, article: str) -> dict[str, Recording]:
        """What there is to choose from. A tab stores no article: an own run's is that on the
        page."""
        on_page = Article.of(article)
        own = {
            f"Run {run.number}: {', '.join(filter(None, (run.label, details(run.settings))))}":
            recording.named("", on_page.text)
            for run, recording in page.recordings
            if run.article == on_page.key
        }  # fmt: skip
        return own | self.shelf.found

    def _pair(
        self, session: Compared, page: Session, article: str, left: str, right: str
    ) -> TwoRuns:
        """The pair that is chosen; where it stands if it is the same as before."""
        found = self._found(page, article)
        if left not in found or right not in found:
            raise BadInput("Choose a run for the left and one for the right side.")
        if session.pair is None or session.names != (left, right):
            session.pair, session.names = TwoRuns(found[left], found[right]), (left, right)
        return session.pair

    def _ready(self, left: str, right: str) -> tuple[str, str] | None:
        """The names of the tour's recordings under these scenarios."""
        if left not in self.scenes or right not in self.scenes:
            return None
        names = {id(r.events): name for name, r in self.shelf.found.items()}
        return names[id(self.scenes[left].events)], names[id(self.scenes[right].events)]


def _choice(label: str, names: Sequence[str], value: str | None, elem_id: str) -> Any:
    return gr.Dropdown(list(names), value=value, label=label, elem_id=elem_id, min_width=200)


def _values(seen: TwoViews) -> tuple[Any, ...]:
    sides = [v for side in (seen.left, seen.right) for v in (side.head, side.stream, side.tags)]
    return (
        seen.line, seen.chart, *sides,
        gr.Button(interactive=not seen.running), gr.Button(interactive=seen.running),
    )  # fmt: skip
