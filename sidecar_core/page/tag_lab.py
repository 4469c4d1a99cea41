"""The tag lab's part of the page: the leak test, and the cost model with its sliders."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import gradio as gr

from sidecar_core.errors import SidecarError, quoted
from sidecar_core.experiments.corpus import Document
from sidecar_core.experiments.cost.devices import BYTES, DEVICES, SHAPES, device_named
from sidecar_core.experiments.cost.model import BATCHES, CostSetup, Lengths, rows
from sidecar_core.experiments.leak.report import LeakSettings
from sidecar_core.host.model_host import ModelHost
from sidecar_core.host.session import Session
from sidecar_core.page import controls, leak_run, words
from sidecar_core.page.edge import QUIET, html, told
from sidecar_core.page.leak_run import TagLabSession
from sidecar_core.page.run import check_size
from sidecar_core.prompts import clean
from sidecar_core.view.render import status
from sidecar_core.view.tag_results import cost_view

MAX_SAMPLES = 200
"""Most tag lists for each condition on the page; the command line allows more."""

LEAK_INTRO = """
<h2>Leak test</h2>
<p class="sub">One summary, many tag lists: how often does a list hold a fact that stands in the
article but not in the summary?</p>
"""

COST_INTRO = """
<h2>What it costs</h2>
<p class="sub">A decode step reads the weights once and every request's cache. Leaving the document
out makes the caches smaller.</p>
"""

EMPTY = '<p class="quiet">Press Sample. Rates appear while tag lists are written.</p>'

SAVE = "(t) => sidecarPage.save('leak.json', t)"

TAGGER = "Qwen2.5-1.5B-Instruct"
"""The reference's tagger."""


def build_tag_lab(host: ModelHost, article: Any, session: Any) -> TagLab:
    """Add the lab to the block that is being built. `article` is the page's article box, `session`
    the page's State of a `Session`, whose latest run the cost model can start from."""
    lab = TagLab(host, article, session)
    lab.build()
    return lab


class TagLab:
    """The components and their handlers."""

    def __init__(self, host: ModelHost, article: Any, page: Any) -> None:
        self.host, self.article, self.page = host, article, page

    def build(self) -> None:
        self.session = gr.State(TagLabSession())
        self.outbox = gr.Textbox(visible="hidden", elem_id="leak-outbox", label="Leak outbox")
        with gr.Row(elem_id="leak", elem_classes="tag-lab"):
            with gr.Column(elem_classes="card", min_width=280):
                self._leak_input()
            with gr.Column(elem_id="leak-output", elem_classes="card", min_width=280):
                self.status = html(
                    status("Samples tags of the article above."),
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
            label="Watch for a fact",
            info="Counted whatever its spelling, for example broken arrow.",
            lines=1,
            max_lines=1,
            elem_id="leak-watch",
        )
        self.summary = gr.Textbox(
            label="Summary to be tagged",
            info="Left empty: the target writes it.",
            lines=3,
            max_lines=6,
            elem_id="leak-summary",
        )
        self.samples = _slider("Tag lists, each", 5, MAX_SAMPLES, defaults.samples, 5)
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
            self.rent = gr.Number(DEVICES["A100"].rent, label="Its rent, $ an hour", min_width=90)
            self.apart = gr.Dropdown(
                list(DEVICES), value="A100", label="Standalone's machine", min_width=90
            )
        self.document = _slider("Document, tokens", 0, 8000, lengths.full - lengths.masked, 10)
        self.rest = _slider("Prompt and summary, tokens", 10, 2000, lengths.masked, 1)
        self.tags = _slider("Tags, tokens", 1, 200, lengths.tags, 1)
        self.idle = _slider("Standalone idle, share of its time", 0, 0.95, scenario.idle, 0.05)
        self.network = _slider(
            "Standalone's network, $ for a million lists", 0, 20, scenario.network, 0.01
        )
        self.from_run = gr.Button("Lengths of the latest run", size="sm", elem_id="cost-from-run")
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
            concurrency_limit=None,  # the host's turnstile lets them in one by one
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
        session: TagLabSession,
        article: str,
        summary: str,
        watch: str,
        samples: float,
        temperature: float,
        request: gr.Request,
    ) -> Iterator[tuple[Any, ...]]:
        """One leak test; what Sample does."""
        with told():
            check_size(article)
            settings = LeakSettings(
                samples=min(int(samples), MAX_SAMPLES),
                temperature=float(temperature),
                watch=watch.strip(),
            )
            document = Document("the article on the page", clean(article))
            forced = summary if summary.strip() else None
            who = request.session_hash
            for view in leak_run.run(self.host, session, document, settings, forced, who):
                result = gr.skip() if view.result is None else view.result
                start = gr.Button(interactive=not view.running)
                yield view.status, result, start, gr.Button(interactive=view.running)

    def json(self, session: TagLabSession) -> str:
        if session.latest is None or not session.latest.lists:
            raise gr.Error("There is nothing to save yet; press Sample.", print_exception=False)
        return json.dumps(session.latest.snapshot().as_dict(), ensure_ascii=False, indent=1)

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
        """The cost model's table for these choices."""
        with told():
            if model not in SHAPES:
                raise SidecarError(f"There is no shape of {quoted(model)}; choose one of the list.")
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
        """Document, the rest and tags of the latest run on the page, in tokens."""
        if not page.runs:
            raise gr.Error("There is no run yet; press Start first.", print_exception=False)
        with told():
            lengths = Lengths.of_run(page.runs[-1].report)
        return lengths.full - lengths.masked, lengths.masked, lengths.tags


def _slider(label: str, low: float, high: float, value: float, step: float) -> Any:
    return gr.Slider(low, high, value=value, step=step, label=label, buttons=[], min_width=110)
