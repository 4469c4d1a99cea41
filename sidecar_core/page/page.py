"""The page: the layout of its components, and their handlers.

Nothing is computed here: a run is `live.run`, a figure is a pure function, and everything that a
visitor types is treated as text. What uses the models waits in the host's queue.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from sidecar_core.errors import BadInput, SidecarError
from sidecar_core.examples import Example, load_examples
from sidecar_core.host.model_host import HostStatus, ModelHost
from sidecar_core.host.session import Session
from sidecar_core.installed import ASSETS
from sidecar_core.page import controls, words
from sidecar_core.page import run as live
from sidecar_core.page.api import add_endpoint
from sidecar_core.page.controls import RunInputs
from sidecar_core.page.edge import (
    FILE_TYPES,
    QUIET,
    Demo,
    as_gradio_errors,
    html,
    outlives_reload,
    read_upload,
)
from sidecar_core.page.labs.alpha_lab import build_alpha_lab
from sidecar_core.page.labs.tag_lab import build_tag_lab
from sidecar_core.page.links import EXAMPLE, RECORDING, from_query, to_query
from sidecar_core.page.looks import asset
from sidecar_core.page.recordings import Recordings
from sidecar_core.page.side_by_side import SideBySide
from sidecar_core.prompts import Article, check_text
from sidecar_core.report import TaggerReport
from sidecar_core.scenarios import SCENARIOS, Scenario, find_scenario
from sidecar_core.settings import MAX_ARTICLE_CHARS, RunSettings
from sidecar_core.view.alpha_chart import alpha_figure
from sidecar_core.view.attention_map import attention_map
from sidecar_core.view.render import attribute, status, text, tiles
from sidecar_core.view.run_view import HINT, RunView
from sidecar_core.view.runs_table import runs_table
from sidecar_core.view.tag_column import column

KEEP_UPLOADS = 300
"""Uploaded files are deleted after this many seconds; they are read immediately."""


def build_demo(
    host: ModelHost,
    examples: tuple[Example, ...] | None = None,
    recordings: Path = ASSETS / "recordings",
) -> Any:
    """The page for `host`, whose models may still be loading. Call `launch(**launch_arguments())`
    on the result."""
    if examples is None:
        examples = load_examples()
    with Demo(
        title="Speculative Sidecar",
        analytics_enabled=False,
        fill_width=True,
        delete_cache=(KEEP_UPLOADS, KEEP_UPLOADS),
    ) as demo:
        _Page(host, examples, recordings).build(demo)
        add_endpoint(host)
    return demo.queue(default_concurrency_limit=1, max_size=4 * host.queue.max_waiting)


class _Page:
    """The components of one page, and their handlers."""

    def __init__(self, host: ModelHost, examples: tuple[Example, ...], recordings: Path) -> None:
        self.host = host
        self.examples = examples
        self.recordings = Recordings(recordings, examples)

    def build(self, demo: Any) -> None:
        self.session = gr.State(Session())
        self.outbox = gr.Textbox(visible="hidden", elem_id="outbox", label="Outbox")
        self.link = gr.Button("Share", visible="hidden", elem_id="link")
        self.address = gr.Textbox(visible="hidden", elem_id="address", label="Address")
        with gr.Row(elem_id="top"):
            html(words.TITLE, elem_id="title")
            self.models = html(self._models(self.host.status()), elem_id="models")
            html(words.TOUR * bool(self.recordings.story) + words.TOOLS, elem_id="tools")
        with gr.Row(elem_id="scenarios"):
            self.scenario_buttons = [
                gr.Button(f"{n}  {s.title}", size="sm", elem_id=f"scenario-{s.key}", min_width=100)
                for n, s in enumerate(SCENARIOS, 1)
            ]
        self.recordings.bar()
        with gr.Row(elem_id="board"):
            with gr.Column(elem_id="input", min_width=280):
                chosen = self._input()
            with gr.Column(elem_id="output", min_width=280):
                self._output()
        self.recordings.shelf()
        with gr.Accordion("More settings", open=False, elem_id="more"):
            chosen |= controls.more()
        self.settings = [chosen[name] for name in controls.SETTINGS]
        self.inputs = {"article": self.article} | {name: chosen[name] for name in controls.SETTINGS}
        with gr.Column(elem_id="below"):
            self._below()
        self._wire(demo)

    def _input(self) -> dict[str, Any]:
        first = self.examples[0] if self.examples else None
        self.example = gr.Dropdown(
            [e.title for e in self.examples],
            value=first.title if first else None,
            label="Example article",
            elem_id="example",
        )
        self.article = gr.Textbox(
            first.text if first else "",
            label="Article",
            placeholder="Paste an article here.",
            lines=11,
            max_lines=11,
            autoscroll=False,
            elem_id="article",
        )
        with gr.Row(elem_id="length"):
            self.count = html(_words(first.text if first else ""), elem_id="count")
            self.trim = gr.Button("", visible=False, size="sm", elem_id="trim", min_width=120)
            self.upload = gr.UploadButton(
                "Upload .txt or .md",
                file_types=FILE_TYPES,
                type="binary",
                size="sm",
                elem_id="upload",
                min_width=120,
            )
        chosen = controls.tasks() | controls.toggles()
        with gr.Row(elem_id="go"):
            self.start = gr.Button("Start", variant="primary", elem_id="start", min_width=100)
            self.stop = gr.Button("Stop", interactive=False, elem_id="stop", min_width=80)
        return chosen

    def _output(self) -> None:
        self.status = html(_ready(), html_template=words.STATUS, elem_id="status")
        self.stale = html("", elem_id="stale")
        self.note = html(HINT, html_template=words.NOTE, elem_id="note")
        self.tiles = html(tiles(None), html_template=words.TILES, elem_id="tiles")
        with gr.Row(elem_id="reading"):
            with gr.Column(elem_id="stream-card", elem_classes="card", min_width=260):
                html(words.STREAM_HEAD, elem_classes="head")
                self.stream = html(
                    {"done": "", "pending": ""}, html_template=words.STREAM, elem_id="stream"
                )
                html(words.LEGEND, elem_id="legend")
            with gr.Column(elem_id="chart-card", elem_classes="card", min_width=220):
                html(words.CHART_HEAD, elem_classes="head")
                self.chart = gr.Plot(
                    alpha_figure(()), show_label=False, container=False, elem_id="chart"
                )
        with gr.Row(elem_id="taggers"):
            with gr.Column(elem_classes="card", elem_id="sidecar-card", min_width=240):
                self.sidecar = html(_empty_column(), html_template=words.SIDECAR, elem_id="sidecar")
            with gr.Column(elem_classes="card", elem_id="standalone-card", min_width=240):
                self.standalone = html(
                    _empty_column(), html_template=words.STANDALONE, elem_id="standalone"
                )

    def _below(self) -> None:
        with gr.Row(elem_id="compare"):
            with gr.Column(elem_classes="card", elem_id="map-card", min_width=280):
                html(words.MAP_HEAD, elem_classes="head")
                self.map = html(attention_map({}, RunSettings()), elem_id="map")
            with gr.Column(elem_classes="card", elem_id="runs-card", min_width=280):
                html(words.RUNS_HEAD, elem_classes="head")
                self.runs = html(runs_table([]), elem_id="runs")
                self.recordings.saving()
        with gr.Tabs(elem_id="labs"):
            with gr.Tab("α lab", elem_id="alpha-lab"):
                build_alpha_lab(self.host, self.article)
            with gr.Tab("Tag lab", elem_id="tag-lab"):
                self.tag_lab = build_tag_lab(self.host, self.article, self.session)
            with gr.Tab("Side by side", elem_id="side-by-side"):
                SideBySide(self.recordings, self.article, self.session).build(self.runs)
        with gr.Accordion("How it works", open=False, elem_id="how"):
            html(asset("how_it_works.html"), elem_id="how-text")
        with gr.Accordion("Is it worth it?", open=False, elem_id="worth"):
            html(asset("worth_it.html"), elem_id="worth-text")
        html(words.ABOUT, elem_id="about")

    def _wire(self, demo: Any) -> None:
        views = [
            self.status, self.tiles, self.stream, self.chart, self.sidecar, self.standalone,
            self.runs, self.note, self.start, self.stop, self.recordings.banner,
        ]  # fmt: skip
        running: dict[str, Any] = {
            "trigger_mode": "once",
            "show_progress": "hidden",
            "concurrency_limit": None,  # the host's queue admits them one by one
        }
        started = [
            self.start.click(
                self.run,
                self.session,
                views,
                inputs_kwargs=self.inputs,
                api_name="run",
                **running,
            )
        ]
        for scenario, button in zip(SCENARIOS, self.scenario_buttons, strict=True):
            run = button.click(
                self._scenario(scenario),
                self.session,
                [*views, *self.settings],
                inputs_kwargs=self.inputs,
                api_visibility="private",
                **running,
            )
            started.append(run)
        known = [self.session, self.article], [self.runs, self.example, self.stale]
        for run in started:  # its article may have been changed meanwhile
            run.then(self.known, *known, **QUIET)
        begun = [button.click for button in (self.start, *self.scenario_buttons)]
        gr.on([*begun, *self.recordings.begun()], None, None, self.stale, js="() => ''", **QUIET)
        controls.stops(self.stop, self.session)

        # One handler for all triggers, so that its updates arrive in order.
        gr.on(
            [
                demo.load,
                self.models.change,
                self.article.change,
                self.runs.change,
                *(setting.change for setting in self.settings),
            ],
            self.look,
            self.session,
            [self.count, self.trim, self.map, self.address],
            inputs_kwargs=self.inputs,
            trigger_mode="always_last",
            concurrency_limit=4,
            **QUIET,
        )
        self.article.change(self.known, *known, trigger_mode="always_last", **QUIET)
        self.trim.click(self.first_tokens, None, self.article, inputs_kwargs=self.inputs, **QUIET)
        self.example.input(self.choose, self.example, self.article, **QUIET)
        self.upload.upload(self.read, self.upload, self.article, **QUIET)
        self.recordings.wire(self.session, self.article, self.settings, views, _outputs)
        self.link.click(
            self.link_of, self.session, self.outbox, inputs_kwargs=self.inputs, **QUIET
        ).success(None, self.outbox, self.outbox, js="(t) => sidecarPage.copyLink(t)")
        self.address.change(
            None, self.address, None, js="(query) => sidecarPage.follow(query)", **QUIET
        )
        timer = gr.Timer(1)
        timer.tick(self.poll, None, [self.models, timer], queue=False, **QUIET)
        opened = [*self.settings, self.note, self.article]
        demo.load(self.open, None, opened, queue=False, **QUIET)
        self.recordings.opens(demo)
        demo.unload(self.on_close)
        outlives_reload(demo, self.article, "article")
        outlives_reload(demo, self.tag_lab.summary, "summary")
        outlives_reload(demo, self.tag_lab.watch, "watch")

    # Handlers

    def on_close(self, request: gr.Request) -> None:
        """A tab was closed, or a program that used the API disconnected."""
        self.host.queue.visitor_left(request.session_hash or "")

    def run(
        self, request: gr.Request, session: Session, **inputs: Any
    ) -> Iterator[tuple[Any, ...]]:
        """The button Start, and the API's `/run`: one run."""
        with as_gradio_errors():
            asked = RunInputs(**inputs)
            settings, who = asked.settings(), request.session_hash
            for view in live.run(self.host, session, asked.article, settings, visitor=who):
                yield _outputs(view)

    def _scenario(self, scenario: Scenario) -> Any:
        def run(request: gr.Request, session: Session, **inputs: Any) -> Iterator[tuple[Any, ...]]:
            with as_gradio_errors():
                asked = RunInputs(**inputs)
                settings = scenario.apply(asked.settings())
                shown: list[Any] = controls.values_of(settings)
                who = request.session_hash
                for view in live.run(self.host, session, asked.article, settings, scenario, who):
                    yield (*_outputs(view), *shown)
                    shown = [gr.skip()] * len(shown)  # settings changed during the run stay

        return run

    def look(self, session: Session, **inputs: Any) -> tuple[Any, ...]:
        """Token count, the offer to cut, the attention map and the address for the current
        inputs."""
        try:
            return *self._lengths(RunInputs(**inputs)), self._address(session, RunInputs(**inputs))
        except SidecarError:
            return gr.skip(), gr.skip(), gr.skip(), gr.skip()

    def _lengths(self, asked: RunInputs) -> tuple[Any, Any, Any]:
        article, settings = asked.article, asked.settings()
        engine = self.host.engine()
        hidden = gr.Button(visible=False)
        if engine is None:
            return _words(article), hidden, attention_map({}, settings)
        if len(article) > MAX_ARTICLE_CHARS:
            count = (
                f'<b class="over">{len(article):,} characters; at most {MAX_ARTICLE_CHARS:,}</b>'
            )
            return count, hidden, attention_map({}, settings)
        limit = engine.article_limit(settings)
        cleaned = Article.of(article)
        tokens = len(engine.prompts.plain(cleaned.text))
        if tokens > limit:
            count = f'<b class="over">{tokens:,} tokens; the limit is {limit:,}</b>'
            offer = gr.Button(f"Use the first {limit:,} tokens", visible=limit > 0)
            return count, offer, attention_map({}, settings)
        lengths: dict[str, int] = {}
        if tokens:
            whole = dataclasses.replace(settings, draft_prompt="compound")
            with contextlib.suppress(SidecarError):  # Start reports the error
                lengths = dict(engine.segments(cleaned, whole))
        return f"{tokens:,} of {limit:,} tokens", hidden, attention_map(lengths, settings)

    def known(self, session: Session, article: str) -> tuple[str, str | None, str]:
        """The runs on an article, the title of the example that it is, if any, and a sentence if
        what is shown belongs to another article."""
        title = next((e.title for e in self.examples if e.text == article), None)
        key = Article.of(article).key
        stale = words.STALE if session.shown not in ("", key) else ""
        return runs_table(session.on(key)), title, stale

    def first_tokens(self, **inputs: Any) -> str:
        with as_gradio_errors():
            asked = RunInputs(**inputs)
            article = check_text(asked.article)
            engine = self.host.engine()
            if engine is None:
                raise SidecarError("The models are still loading. Try again in a moment.")
            limit = engine.article_limit(asked.settings())
            return str(engine.prompts.first_tokens(article.text, limit))

    def choose(self, title: str) -> Any:
        return next((e.text for e in self.examples if e.title == title), gr.skip())

    def read(self, data: bytes) -> str:
        with as_gradio_errors():
            return read_upload(data)

    def link_of(self, session: Session, **inputs: Any) -> str:
        """The address of what is shown: a recording, or the example, the scenario and the settings
        on the page. An article of the visitor's own is in none."""
        with as_gradio_errors():
            return self._address(session, RunInputs(**inputs))

    def _address(self, session: Session, asked: RunInputs) -> str:
        if name := self.recordings.known.name_of(session.recording):
            return to_query(RunSettings(), recording=name)
        settings = asked.settings()
        key = session.recording.header.scenario if session.recording else ""
        scenario = find_scenario(key)
        if scenario is None or scenario.apply(settings) != settings:
            key = ""
        example = next((e.key for e in self.examples if e.text == asked.article), "")
        return to_query(settings, example=example, scenario=key)

    def poll(self) -> tuple[Any, Any]:
        """The state of the models, until they are ready."""
        now = self.host.status()
        return self._models(now), gr.Timer(active=False) if now.state == "ready" else gr.skip()

    def _models(self, now: HostStatus) -> str:
        """The models' line; until they are ready, with a button for the recordings."""
        return _models(now, words.MEANWHILE if self.recordings.known.found else "")

    def open(self, request: gr.Request) -> list[Any]:
        """Settings, scenario and example from the page's address. Other settings stay: a quick
        visitor may have changed them already."""
        note: Any = gr.skip()
        query = dict(request.query_params)
        article = next((e.text for e in self.examples if e.key == query.get(EXAMPLE)), None)
        try:
            settings, scenario = from_query(query)
            if EXAMPLE in query and article is None:
                raise BadInput("This link names an example that is not here.")
            if RECORDING in query and query[RECORDING] not in self.recordings.known.files:
                raise BadInput("This link names a recording that is not here.")
        except SidecarError as error:
            settings, scenario = RunSettings(), None
            note = text(f"{error} The page opened with the default settings.")
        if scenario is not None:
            note = f"<b>{text(scenario.title)}.</b> {text(scenario.look)} Press Start."
        pairs = zip(
            controls.values_of(settings), controls.values_of(controls.DEFAULTS), strict=True
        )
        shown = [gr.skip() if value == default else value for value, default in pairs]
        return [*shown, note, article or gr.skip()]


def _outputs(view: RunView) -> tuple[Any, ...]:
    return (
        view.status, view.tiles, view.stream, view.chart, view.sidecar, view.standalone, view.runs,
        view.note, gr.Button(interactive=not view.running), gr.Button(interactive=view.running),
        view.banner,
    )  # fmt: skip


def _words(article: str) -> str:
    """Replaces the token count until the tokenizer is loaded."""
    return f"{len(article.split()):,} words"


def _ready() -> dict[str, str]:
    return status("Press Start, or choose one of the five scenarios.")


def _empty_column() -> dict[str, str]:
    return column(TaggerReport(), "", "")


def _models(now: HostStatus, meanwhile: str) -> str:
    percent = f" {now.fraction:.0%}" if now.fraction is not None else ""
    width = f"{now.fraction:.0%}" if now.fraction is not None else "0%"
    return (
        f'<div class="models {now.state}" title="{attribute(now.text)}"><i class="lamp"></i>'
        f"<span>{text(now.text)}{percent}{'' if now.state == 'ready' else meanwhile}</span>"
        f'<div class="bar"><i style="width:{width}"></i></div></div>'
    )
