"""The page's function for other programs: an article in, summary, tags and figures out.

It is an endpoint of Gradio's API, `/summarise`, and the tool of that name where the page is served
as an MCP server (GRADIO_MCP_SERVER=true, with `gradio[mcp]` installed). It waits for its turn at
the models like every visitor.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from sidecar_core.errors import SidecarError
from sidecar_core.host.model_host import ModelHost
from sidecar_core.host.session import Session
from sidecar_core.page import run as live
from sidecar_core.page.controls import settings_from
from sidecar_core.view.run_view import STAYS


def add_endpoint(host: ModelHost) -> None:
    """Add the endpoint to the block that is being built."""

    def summarise(
        request: gr.Request,
        article: str,
        task: str = "hashtags",
        document_masking: bool = True,
        max_tokens: int = 160,
        temperature: float = 0.0,
        seed: int = 0,
        instruction: str = "",
        opening: str = "",
    ) -> dict[str, Any]:
        """Summarise an article in three bullets by speculative decoding; the draft model then
        writes hashtags (or another task) for the summary on the side.

        Args:
            article: the text to summarise.
            task: what the draft writes: hashtags, headline, keywords, category, french, or free.
            document_masking: hide the article while that is written.
            max_tokens: longest summary, in tokens, up to 512.
            temperature: 0 always takes the likeliest token.
            seed: matters above temperature 0.
            instruction: what a free task asks for ("After the summary, output …").
            opening: what the answer to a free task opens with.

        Returns:
            The run's figures: `summary`, `alpha`, `acceptance_rate`, `sidecar` and `standalone`
            with their `tags`, `timings`, `settings`; `stopped` says why where time was up.
        """
        asked = {
            "task": task,
            "document_masking": document_masking,
            "max_tokens": max_tokens,
            "temperature": temperature,
            "seed": seed,
            "task_suffix": instruction,
            "task_cue": opening,
        }
        session, visitor = Session(), request.session_hash if request else None
        try:
            settings = settings_from(asked)
            for look in live.follow(host, session, article, settings, visitor=visitor):
                last = look
            ending = last().status["message"].removesuffix(f" {STAYS}")
            if not session.runs:
                raise SidecarError(ending)
        except SidecarError as error:
            raise gr.Error(str(error), print_exception=False) from error
        report = session.runs[-1].report
        cut = report.finished is None or report.finished.reason == "cancelled"
        return report.as_dict() | ({"stopped": ending} if cut else {})

    gr.api(summarise, api_name="summarise", concurrency_limit=None)
