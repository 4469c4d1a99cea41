"""The page's function for other programs: an article in; summary, tags and figures out.

It is the endpoint `/summarise` of Gradio's API, and a tool of that name if the page is served as an
MCP server (GRADIO_MCP_SERVER=true, with `gradio[mcp]` installed). Its runs wait in the queue like
everybody's. An error's title tells programs what kind of error it is (`errors.py`).
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from sidecar_core.errors import SidecarError
from sidecar_core.host.limits import time_limit_message
from sidecar_core.host.model_host import ModelHost
from sidecar_core.host.session import Session
from sidecar_core.page.controls import checked_settings
from sidecar_core.page.run import NOT_STARTED, follow
from sidecar_core.settings import RunSettings

DEFAULTS = RunSettings()


def add_endpoint(host: ModelHost) -> None:
    """Add the endpoint to the block that is being built."""

    def summarise(
        request: gr.Request,
        article: str,
        task: str = DEFAULTS.task,
        document_masking: bool = DEFAULTS.document_masking,
        max_tokens: int = DEFAULTS.max_tokens,
        temperature: float = DEFAULTS.temperature,
        seed: int = DEFAULTS.seed,
        instruction: str = "",
        opening: str = "",
        main_task: str = DEFAULTS.main_task,
        main_instruction: str = "",
    ) -> dict[str, Any]:
        """Summarise an article in three bullets (or do another main task) by speculative decoding;
        then the draft model writes hashtags (or another task's result) for the summary.

        Args:
            article: the text to summarise.
            task: what the draft writes: hashtags, headline, keywords, category, french, or free.
            document_masking: mask the article while the draft writes that.
            max_tokens: longest summary in tokens, up to 512.
            temperature: 0 always takes the likeliest token.
            seed: matters above temperature 0.
            instruction: what a free task asks for ("After the summary, output …").
            opening: how the answer to a free task begins.
            main_task: what the target writes: summary, paragraph, plain-language, questions, own.
            main_instruction: what a main task of your own asks for.

        Returns:
            The run's figures: `summary`, `alpha`, `acceptance_rate`, `sidecar` and `standalone`
            with their `tags`, `timings`, `settings`. `ending` says how the run ended: finished,
            stopped or timed_out; `stopped` explains an early end.
        """
        asked = {
            "task": task,
            "document_masking": document_masking,
            "max_tokens": max_tokens,
            "temperature": temperature,
            "seed": seed,
            "task_suffix": instruction,
            "task_cue": opening,
            "main_task": main_task,
            "instruction": main_instruction,
        }
        session, visitor = Session(), request.session_hash if request else None
        try:
            settings = checked_settings(asked)
            for _ in follow(host, session, article, settings, visitor=visitor):
                pass  # the views are for the page
            if not session.runs:
                raise SidecarError(NOT_STARTED)
        except SidecarError as error:
            raise gr.Error(str(error), title=error.title, print_exception=False) from error
        report = session.runs[-1].report
        if report.ending == "finished":
            return report.as_dict()
        timed_out = report.ending == "timed_out"
        return report.as_dict() | {
            "stopped": time_limit_message(host.max_seconds) if timed_out else "Stopped."
        }

    gr.api(summarise, api_name="summarise", concurrency_limit=None)
