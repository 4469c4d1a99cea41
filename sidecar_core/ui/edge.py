"""The edge to Gradio: where an error that a visitor can read becomes what Gradio shows."""

from __future__ import annotations

import contextlib
import html
from collections.abc import Iterator

import gradio as gr

from sidecar_core.errors import SidecarError


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Turns a SidecarError into Gradio's. Its words may quote what came from elsewhere, and Gradio
    shows a message as HTML: here they become text."""
    try:
        yield
    except SidecarError as error:
        raise gr.Error(html.escape(str(error), quote=False), print_exception=False) from error
