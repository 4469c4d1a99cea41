"""How the page looks and what a browser may send: the arguments of Gradio's `launch()`."""

from __future__ import annotations

from typing import Any

import gradio as gr

from sidecar_core.host.limits import MAX_WAITING
from sidecar_core.installed import ASSETS
from sidecar_core.page.recordings import AT_ONCE

MAX_UPLOAD = "4mb"
"""Largest upload. A recording may be that large; other files have lower limits."""

STYLES = ("style.css", "alpha_lab.css", "tag_lab.css", "recordings.css", "inspector.css")

SCRIPTS = ("page.js", "tour.js", "inspector.js", "rounds.js")


def launch_arguments(max_waiting: int = MAX_WAITING) -> dict[str, Any]:
    """Arguments of `launch()` for this page: its style, and no history in the browser."""
    return {
        "theme": _theme(),
        "css": "".join(map(asset, STYLES)),
        "head": f"<script>{''.join(map(asset, SCRIPTS))}</script>",
        "run_history": False,
        "footer_links": ["api", "settings"],
        "ssr_mode": False,
        "max_file_size": MAX_UPLOAD,
        "max_threads": AT_ONCE + 2 * max_waiting + 20,
        "show_error": True,
    }


def asset(name: str) -> str:
    """The text of a file in `assets/`."""
    return (ASSETS / name).read_text(encoding="utf-8")


def _theme() -> Any:
    """Gradio's base theme with system fonts: nothing is fetched from other hosts."""
    return gr.themes.Base(
        primary_hue=gr.themes.colors.blue,
        neutral_hue=gr.themes.colors.stone,
        font=["system-ui", "-apple-system", "Segoe UI", "sans-serif"],
        font_mono=["ui-monospace", "SFMono-Regular", "Menlo", "monospace"],
        radius_size=gr.themes.sizes.radius_md,
        spacing_size=gr.themes.sizes.spacing_sm,
    )
