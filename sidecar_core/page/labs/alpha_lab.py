"""The α lab's part of the page: its components and their handlers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import gradio as gr

from sidecar_core.errors import BadInput
from sidecar_core.experiments.alpha.conditions import ABOUT
from sidecar_core.experiments.corpus import MAX_CHARS, Document, Skipped, read_jsonl
from sidecar_core.host.model_host import ModelHost
from sidecar_core.page import controls, words
from sidecar_core.page.edge import QUIET, as_gradio_errors, html
from sidecar_core.page.labs.alpha_measurement import AlphaLabSession, AlphaMeasurement
from sidecar_core.page.labs.lab_run import run_lab
from sidecar_core.prompts import check_text
from sidecar_core.view.render import status

MAX_ARTICLES = 100
"""Most articles of one measurement on the page; the command line has no limit."""

INTRO = """
<h2>α lab</h2>
<p class="sub">The target writes a summary once. Then both models predict every token of it; α is
the mean overlap of their predictions. All conditions use the same summary, so they differ only in
what the draft sees.</p>
"""

EMPTY = '<p class="quiet">Press Measure. Bars appear while the draft reads the summary.</p>'

SAVE = "(t) => sidecarPage.save('{}', t)"


def build_alpha_lab(host: ModelHost, article: Any) -> None:
    """Add the lab to the block that is being built. `article` is the page's article box."""
    AlphaLab(host, article).build()


class AlphaLab:
    """The components and their handlers."""

    def __init__(self, host: ModelHost, article: Any) -> None:
        self.host = host
        self.article = article

    def build(self) -> None:
        self.session = gr.State(AlphaLabSession())
        self.outbox = gr.Textbox(visible="hidden", elem_id="lab-outbox", label="Lab outbox")
        with gr.Row(elem_id="lab"):
            with gr.Column(elem_id="lab-input", elem_classes="card", min_width=280):
                self._input()
            with gr.Column(elem_id="lab-output", elem_classes="card", min_width=280):
                self.status = html(
                    status("Measures the article above, or a file of articles."),
                    html_template=words.STATUS,
                    elem_id="lab-status",
                )
                self.figure = html(EMPTY, elem_id="lab-figure")
        self._wire()

    def _input(self) -> None:
        html(INTRO, elem_id="lab-intro")
        self.source = gr.Radio(
            [("the article above", "page"), ("an uploaded file", "file")],
            value="page",
            label="Articles",
            elem_id="lab-source",
        )
        self.upload = gr.UploadButton(
            "Upload .jsonl",
            file_types=[".jsonl"],
            type="binary",
            size="sm",
            elem_id="lab-upload",
        )
        self.loaded = html("", elem_id="lab-loaded")
        self.limit = gr.Slider(
            1, MAX_ARTICLES, value=30, step=1, label="Articles, at most", elem_id="lab-limit"
        )
        self.compared = gr.Radio(
            [("what the draft sees", "conditions"), ("length of the masked suffix", "lengths")],
            value="conditions",
            label="Compare",
            elem_id="lab-kind",
        )
        self.names = gr.CheckboxGroup(
            [(f"{name}: {about}", name) for name, about in ABOUT.items()],
            value=list(ABOUT),
            label="Conditions",
            elem_id="lab-conditions",
        )
        with gr.Row(elem_classes="pair"):
            self.start = gr.Button("Measure", variant="primary", elem_id="lab-start", min_width=90)
            self.stop = gr.Button("Stop", interactive=False, elem_id="lab-stop", min_width=70)
        with gr.Row(elem_classes="pair"):
            self.as_csv = gr.Button("Save CSV", size="sm", elem_id="lab-csv", min_width=90)
            self.as_json = gr.Button("Save JSON", size="sm", elem_id="lab-json", min_width=90)

    def _wire(self) -> None:
        self.start.click(
            self.measure,
            [self.session, self.article, self.source, self.limit, self.compared, self.names],
            [self.status, self.figure, self.start, self.stop],
            trigger_mode="once",
            concurrency_limit=None,  # the host's queue admits them one by one
            **QUIET,
        )
        controls.stops(self.stop, self.session)
        self.upload.upload(
            self.read, [self.session, self.upload], [self.loaded, self.source], **QUIET
        )
        self.compared.change(
            None,
            self.compared,
            self.names,
            js="(k) => ({__type__: 'update', visible: k !== 'lengths'})",
        )
        for button, handler, name in (
            (self.as_csv, self.csv, "alpha.csv"),
            (self.as_json, self.json, "alpha.json"),
        ):
            button.click(handler, self.session, self.outbox, **QUIET).success(
                None, self.outbox, self.outbox, js=SAVE.format(name)
            )

    # Handlers

    def measure(
        self,
        session: AlphaLabSession,
        article: str,
        source: str,
        limit: int,
        compared: Any,
        names: Any,
        request: gr.Request,
    ) -> Iterator[tuple[Any, ...]]:
        """The button Measure: one measurement."""
        with as_gradio_errors():
            documents, skipped = self._documents(session, article, source, limit)
            measurement = AlphaMeasurement(
                compared, tuple(names), documents, list(skipped), session.records
            )
            for view in run_lab(self.host, session, measurement, request.session_hash):
                figure = gr.skip() if view.result is None else view.result
                start = gr.Button(interactive=not view.running)
                yield view.status, figure, start, gr.Button(interactive=view.running)

    def _documents(
        self, session: AlphaLabSession, article: str, source: str, limit: int
    ) -> tuple[tuple[Document, ...], tuple[Skipped, ...]]:
        if source == "file":
            if not session.documents:
                raise BadInput("No file was uploaded. Upload a .jsonl file with articles.")
            return session.documents[: max(1, int(limit))], session.skipped
        return (Document("the article above", check_text(article).text),), ()

    def read(self, session: AlphaLabSession, data: bytes) -> tuple[Any, ...]:
        """Keep an upload's articles for this tab, and show what was found in it."""
        with as_gradio_errors():
            corpus = read_jsonl("upload.jsonl", data, limit=MAX_ARTICLES)
        session.documents, session.skipped = corpus.documents, corpus.skipped
        cut = sum(document.cut for document in corpus.documents)
        found = _count(len(corpus.documents), "article")
        found += f", {cut} cut to {MAX_CHARS:,} characters" if cut else ""
        found += f", {_count(len(corpus.skipped), 'line')} skipped" if corpus.skipped else ""
        return f'<p class="sub">{found}.</p>', "file"

    def csv(self, session: AlphaLabSession) -> str:
        return _measured(session).csv()

    def json(self, session: AlphaLabSession) -> str:
        return json.dumps(_measured(session).saved(), ensure_ascii=False, indent=1)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _measured(session: AlphaLabSession) -> AlphaMeasurement:
    latest = session.latest
    if latest is None or not latest.results:
        raise gr.Error("There are no results yet. Press Measure first.", print_exception=False)
    return latest
