"""The edge to Gradio: what a visitor is told when something is wrong."""

from __future__ import annotations

import contextlib
import html
from collections.abc import Iterator
from typing import Any

import gradio as gr

from sidecar_core.errors import SidecarError


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
        raise gr.Error(html.escape(str(error), quote=False), print_exception=False) from error
