"""The edge to Gradio: what every part of the page needs of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from html import escape
from typing import Any

import gradio as gr

from sidecar_core.errors import BadInput, SidecarError
from sidecar_core.files import decode
from sidecar_core.prompts import is_blank
from sidecar_core.settings import MAX_ARTICLE_CHARS

QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
"""For handlers that only redraw: no spinner, no entry in the API's description."""

FILE_TYPES = [".txt", ".md"]


def html(value: Any, **options: Any) -> Any:
    """An HTML component without Gradio's own text styles."""
    return gr.HTML(value, apply_default_css=False, js_on_load=None, **options)


def outlives_reload(demo: Any, box: Any, name: str) -> None:
    """Keep what is typed into `box` in the browser's session, and put it back when the page is
    loaded again, as it is after the server was restarted. Both are done by the browser alone."""
    box.change(None, box, None, js=f"(t) => sidecarPage.keep('{name}', t)", **QUIET)
    demo.load(None, box, box, js=f"(t) => sidecarPage.kept('{name}', t)", **QUIET)


class Demo(gr.Blocks):
    """Gradio's page, with a short error for a call that lacks values. Gradio's own error would
    quote the values it got, also in the log."""

    def validate_inputs(self, block_fn: Any, inputs: list[Any]) -> None:
        needed = len(block_fn.inputs)
        if len(inputs) < needed:
            raise gr.Error(
                f"This call takes {needed} values but got {len(inputs)}; see “Use via API”.",
                title=BadInput.title,
                print_exception=False,
            )


@contextlib.contextmanager
def as_gradio_errors() -> Iterator[None]:
    """Turns a SidecarError into a gr.Error with its title. Gradio renders messages as HTML, and a
    message may quote a visitor's input, so it is escaped."""
    try:
        yield
    except SidecarError as error:
        raise gr.Error(
            escape(str(error), quote=False), title=error.title, print_exception=False
        ) from error


def read_upload(data: bytes) -> str:
    """The text of an uploaded file. Raises BadInput if it is empty, too long or not text."""
    if len(data) > 4 * MAX_ARTICLE_CHARS:
        raise BadInput(
            f"The file has {len(data):,} bytes; an article may have at most "
            f"{MAX_ARTICLE_CHARS:,} characters. Upload a shorter one."
        )
    try:
        text = decode(data)
    except UnicodeError as error:
        raise BadInput(
            "The file is not UTF-8 text. Save it as a plain .txt or .md file."
        ) from error
    if is_blank(text):
        raise BadInput("The file is empty; the article on the page stays. Upload another one.")
    return text
