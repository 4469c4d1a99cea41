"""The α lab's part of the page: what is where, and what happens when something is pressed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import gradio as gr

from sidecar_core.errors import SidecarError
from sidecar_core.experiments.alpha.conditions import ABOUT
from sidecar_core.experiments.corpus import MAX_CHARS, Document, read_jsonl
from sidecar_core.host.model_host import ModelHost
from sidecar_core.page import alpha_run, controls, words
from sidecar_core.page.alpha_run import LabSession
from sidecar_core.page.edge import QUIET, html, told
from sidecar_core.page.run import check_size
from sidecar_core.prompts import clean
from sidecar_core.view.render import status

MAX_ARTICLES = 100
"""Most articles of one measurement on the page; the command line has no limit."""

INTRO = """
<h2>α lab</h2>
<p class="sub">The target's summary is written once. Then both models are asked at every position of
it what they would have said; α is how much of their answers agrees. Everybody reads the same
tokens, so that what differs is only what the draft may see.</p>
"""

EMPTY = '<p class="quiet">Press Measure. Bars appear while the draft reads the summary.</p>'

SAVE = "(t) => sidecarPage.save('{}', t)"


def build_alpha_lab(host: ModelHost, article: Any) -> None:
    """Add the lab to the block that is being built. `article` is the page's article box."""
    _Lab(host, article).build()


class _Lab:
    """The components and their handlers."""

    def __init__(self, host: ModelHost, article: Any) -> None:
        self.host = host
        self.article = article

    def build(self) -> None:
        self.session = gr.State(LabSession())
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
            [("the article on the page", "page"), ("an uploaded file", "file")],
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
            1, MAX_ARTICLES, value=30, step=1, label="Articles at most", elem_id="lab-limit"
        )
        self.kind = gr.Radio(
            [("what the draft sees", "conditions"), ("how long the hidden suffix is", "lengths")],
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
            [self.session, self.article, self.source, self.limit, self.kind, self.names],
            [self.status, self.figure, self.start, self.stop],
            trigger_mode="once",
            concurrency_limit=None,  # the host's turnstile lets them in one by one
            **QUIET,
        )
        controls.stops(self.stop, self.session)
        self.upload.upload(
            self.read, [self.session, self.upload], [self.loaded, self.source], **QUIET
        )
        self.kind.change(
            None,
            self.kind,
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
        session: LabSession,
        article: str,
        source: str,
        limit: int,
        kind: Any,
        names: Any,
        request: gr.Request,
    ) -> Iterator[tuple[Any, ...]]:
        """One measurement; what Measure does."""
        with told():
            documents, skipped = self._documents(session, article, source, limit)
            who = request.session_hash
            for view in alpha_run.run(self.host, session, documents, kind, names, skipped, who):
                figure = gr.skip() if view.figure is None else view.figure
                start = gr.Button(interactive=not view.running)
                yield view.status, figure, start, gr.Button(interactive=view.running)

    def _documents(
        self, session: LabSession, article: str, source: str, limit: int
    ) -> tuple[tuple[Document, ...], tuple[Any, ...]]:
        if source == "file":
            if not session.documents:
                raise SidecarError("No file was uploaded yet; upload a .jsonl file with articles.")
            return session.documents[: max(1, int(limit))], session.skipped
        check_size(article)
        return (Document("the article on the page", clean(article)),), ()

    def read(self, session: LabSession, data: bytes) -> tuple[Any, ...]:
        """Keep an upload's articles for this tab, and say what was found in it."""
        with told():
            corpus = read_jsonl("upload.jsonl", data, limit=MAX_ARTICLES)
        session.documents, session.skipped = corpus.documents, corpus.skipped
        cut = sum(document.cut for document in corpus.documents)
        found = _count(len(corpus.documents), "article")
        found += f", {cut} cut to {MAX_CHARS:,} characters" if cut else ""
        found += f", {_count(len(corpus.skipped), 'line')} skipped" if corpus.skipped else ""
        return f'<p class="sub">{found}.</p>', "file"

    def csv(self, session: LabSession) -> str:
        return _measured(session).csv()

    def json(self, session: LabSession) -> str:
        return json.dumps(_measured(session).saved(), ensure_ascii=False, indent=1)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _measured(session: LabSession) -> alpha_run.Measurement:
    latest = session.latest
    if latest is None or not latest.results:
        raise gr.Error(
            "There is nothing to save yet; measure an article first.", print_exception=False
        )
    return latest
