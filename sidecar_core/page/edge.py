"""The edge to Gradio: what every part of the page needs of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from html import escape
from typing import Any

import gradio as gr

from sidecar_core.errors import SidecarError

QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
"""For handlers that only redraw: no spinner over the page, nothing in the API's description."""


def html(value: Any, **options: Any) -> Any:
    """An HTML component without Gradio's own text styles."""
    return gr.HTML(value, apply_default_css=False, js_on_load=None, **options)


def outlives_reload(demo: Any, box: Any, name: str) -> None:
    """Keep what is typed into `box` in the browser's session, and put it back when the page is
    loaded again, as it is after the server was restarted. Both are done by the browser alone."""
    box.change(None, box, None, js=f"(t) => sidecarPage.keep('{name}', t)", **QUIET)
    demo.load(None, box, box, js=f"(t) => sidecarPage.kept('{name}', t)", **QUIET)


class Demo(gr.Blocks):
    """Gradio's page, with a short word for a call that lacks values: its own quotes those that
    came, to the log as well."""

    def validate_inputs(self, block_fn: Any, inputs: list[Any]) -> None:
        needed = len(block_fn.inputs)
        if len(inputs) < needed:
            raise gr.Error(
                f"This call takes {needed} values, {len(inputs)} came; see “Use via API”.",
                print_exception=False,
            )


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Turns a SidecarError into Gradio's. Its words may quote what came from elsewhere, and Gradio
    shows a message as HTML: here they become text."""
    try:
        yield
    except SidecarError as error:
        raise gr.Error(escape(str(error), quote=False), print_exception=False) from error
