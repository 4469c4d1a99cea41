"""The tag lab's part of the page: the leak test, and the cost model with its sliders."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import gradio as gr

from sidecar_core.errors import BadInput, quoted
from sidecar_core.experiments.corpus import Document
from sidecar_core.experiments.cost.devices import BYTES, DEVICES, SHAPES, device_named
from sidecar_core.experiments.cost.model import BATCHES, CostSetup, Lengths, rows
from sidecar_core.experiments.leak.report import LeakSettings
from sidecar_core.host.model_host import ModelHost
from sidecar_core.host.session import Session
from sidecar_core.page import controls, words
from sidecar_core.page.edge import QUIET, as_gradio_errors, html
from sidecar_core.page.labs.lab_run import run_lab
from sidecar_core.page.labs.leak_measurement import LeakLabSession, LeakMeasurement
from sidecar_core.prompts import check_text
from sidecar_core.view.labs.tag_results import cost_view
from sidecar_core.view.render import status

MAX_SAMPLES = 200
"""Most tag lists per condition on the page; the command line allows more."""

LEAK_INTRO = """
<h2>Leak test</h2>
<p class="sub">One summary, many tag lists: how often does a list contain a tag that is found in the
article but not in the summary?</p>
"""

COST_INTRO = """
<h2>What it costs</h2>
<p class="sub">A decode step reads the weights once, and the cache of every request. Masking the
document makes the caches smaller.</p>
"""

EMPTY = '<p class="quiet">Press Sample. Rates appear while the tag lists are written.</p>'

SAVE = "(t) => sidecarPage.save('leak.json', t)"

TAGGER = "Qwen2.5-1.5B-Instruct"
"""The tagger of the posts' cost table."""


def build_tag_lab(host: ModelHost, article: Any, session: Any) -> TagLab:
    """Add the lab to the block that is being built. `article` is the page's article box; `session`
    is its State of a `Session`, whose latest run the cost model can start from."""
    lab = TagLab(host, article, session)
    lab.build()
    return lab


class TagLab:
    """The components and their handlers."""

    def __init__(self, host: ModelHost, article: Any, page: Any) -> None:
        self.host, self.article, self.page = host, article, page

    def build(self) -> None:
        self.session = gr.State(LeakLabSession())
        self.outbox = gr.Textbox(visible="hidden", elem_id="leak-outbox", label="Leak outbox")
        with gr.Row(elem_id="leak", elem_classes="tag-lab"):
            with gr.Column(elem_classes="card", min_width=280):
                self._leak_input()
            with gr.Column(elem_id="leak-output", elem_classes="card", min_width=280):
                self.status = html(
                    status("Samples tags for the article above."),
                    html_template=words.STATUS,
                    elem_id="leak-status",
                )
                self.result = html(EMPTY, elem_id="leak-result")
        with gr.Row(elem_id="cost", elem_classes="tag-lab"):
            with gr.Column(elem_classes="card", min_width=280):
                self._cost_input()
            with gr.Column(elem_id="cost-output", elem_classes="card", min_width=280):
                self.cost = html(self.cost_of(*self._defaults()), elem_id="cost-result")
        self._wire()

    def _leak_input(self) -> None:
        defaults = LeakSettings()
        html(LEAK_INTRO)
        self.watch = gr.Textbox(
            label="Word to watch",
            info="Counted in any spelling, for example: broken arrow.",
            lines=1,
            max_lines=1,
            elem_id="leak-watch",
        )
        self.summary = gr.Textbox(
            label="Summary to tag",
            info="If empty, the target writes one.",
            lines=3,
            max_lines=6,
            elem_id="leak-summary",
        )
        self.samples = _slider("Tag lists per condition", 5, MAX_SAMPLES, defaults.samples, 5)
        self.temperature = _slider("Temperature", 0.1, 1.5, defaults.temperature, 0.1)
        with gr.Row(elem_classes="pair"):
            self.start = gr.Button("Sample", variant="primary", elem_id="leak-start", min_width=90)
            self.stop = gr.Button("Stop", interactive=False, elem_id="leak-stop", min_width=70)
        self.save = gr.Button("Save JSON", size="sm", elem_id="leak-save")

    def _cost_input(self) -> None:
        html(COST_INTRO)
        lengths, scenario = Lengths(), CostSetup(SHAPES[TAGGER].footprint("bf16"))
        self.model = gr.Dropdown(list(SHAPES), value=TAGGER, label="Tagger", elem_id="cost-model")
        with gr.Row(elem_classes="pair"):
            self.precision = gr.Dropdown(list(BYTES), value="bf16", label="Precision", min_width=90)
            self.device = gr.Dropdown(list(DEVICES), value="A100", label="Machine", min_width=90)
        with gr.Row(elem_classes="pair"):
            self.rent = gr.Number(DEVICES["A100"].rent, label="Machine price, $/hour", min_width=90)
            self.apart = gr.Dropdown(
                list(DEVICES), value="A100", label="Standalone's machine", min_width=90
            )
        self.document = _slider("Document, tokens", 0, 8000, lengths.full - lengths.masked, 10)
        self.rest = _slider("Prompt and summary, tokens", 10, 2000, lengths.masked, 1)
        self.tags = _slider("Tags, tokens", 1, 200, lengths.tags, 1)
        self.idle = _slider("Standalone: share of idle time", 0, 0.95, scenario.idle, 0.05)
        self.network = _slider(
            "Standalone: network, $ per million lists", 0, 20, scenario.network, 0.01
        )
        self.from_run = gr.Button(
            "Use the latest run's lengths", size="sm", elem_id="cost-from-run"
        )
        self.choices = [
            self.model, self.precision, self.device, self.rent, self.apart,
            self.document, self.rest, self.tags, self.idle, self.network,
        ]  # fmt: skip

    def _defaults(self) -> list[Any]:
        return [component.value for component in self.choices]

    def _wire(self) -> None:
        self.start.click(
            self.sample,
            [self.session, self.article, self.summary, self.watch, self.samples, self.temperature],
            [self.status, self.result, self.start, self.stop],
            trigger_mode="once",
            concurrency_limit=None,  # the host's queue admits them one by one
            **QUIET,
        )
        controls.stops(self.stop, self.session)
        self.save.click(self.json, self.session, self.outbox, **QUIET).success(
            None, self.outbox, self.outbox, js=SAVE
        )
        gr.on(
            [choice.change for choice in self.choices],
            self.cost_of,
            self.choices,
            self.cost,
            trigger_mode="always_last",
            concurrency_limit=4,
            **QUIET,
        )
        self.device.input(self.rent_of, self.device, self.rent, queue=False, **QUIET)
        self.from_run.click(
            self.lengths_of, self.page, [self.document, self.rest, self.tags], **QUIET
        )

    # Handlers

    def sample(
        self,
        session: LeakLabSession,
        article: str,
        summary: str,
        watch: str,
        samples: float,
        temperature: float,
        request: gr.Request,
    ) -> Iterator[tuple[Any, ...]]:
        """The button Sample: one leak test."""
        with as_gradio_errors():
            document = Document("the article above", check_text(article).text)
            settings = LeakSettings(
                samples=min(int(samples), MAX_SAMPLES),
                temperature=float(temperature),
                watch=watch.strip(),
            )
            forced = summary if summary.strip() else None
            test = LeakMeasurement(document, settings, forced, session.records)
            for view in run_lab(self.host, session, test, request.session_hash):
                result = gr.skip() if view.result is None else view.result
                start = gr.Button(interactive=not view.running)
                yield view.status, result, start, gr.Button(interactive=view.running)

    def json(self, session: LeakLabSession) -> str:
        if session.latest is None or not session.latest.report.lists:
            raise gr.Error("There are no results yet. Press Sample first.", print_exception=False)
        found = session.latest.report.snapshot().as_dict()
        return json.dumps(found, ensure_ascii=False, indent=1)

    def cost_of(
        self,
        model: str,
        precision: str,
        device: str,
        rent: float | None,
        apart: str,
        document: float,
        rest: float,
        tags: float,
        idle: float,
        network: float,
    ) -> str:
        """The cost model's result for these choices."""
        with as_gradio_errors():
            if model not in SHAPES:
                raise BadInput(f"There is no model {quoted(model)}; choose one from the list.")
            machine = device_named(device)
            scenario = CostSetup(
                SHAPES[model].footprint(precision),
                dataclasses.replace(machine, rent=machine.rent if rent is None else float(rent)),
                dataclasses.replace(
                    Lengths(), full=int(document + rest), masked=int(rest), tags=int(tags)
                ),
                device_named(apart),
                float(idle),
                float(network),
            )
            return cost_view(scenario, rows(scenario, BATCHES))

    def rent_of(self, device: str) -> float:
        return device_named(device).rent

    def lengths_of(self, page: Session) -> tuple[int, int, int]:
        """Tokens of the latest run on the page: document, prompt and summary, tags."""
        if not page.runs:
            raise gr.Error("There is no run yet. Press Start first.", print_exception=False)
        with as_gradio_errors():
            lengths = Lengths.of_run(page.runs[-1].report)
        return lengths.full - lengths.masked, lengths.masked, lengths.tags


def _slider(label: str, low: float, high: float, value: float, step: float) -> Any:
    return gr.Slider(low, high, value=value, step=step, label=label, buttons=[], min_width=110)
