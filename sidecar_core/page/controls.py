"""The components for a run's settings, and the way from their values to `RunSettings` and back."""

from __future__ import annotations

from typing import Any

import gradio as gr

from sidecar_core.settings import MAX_TASK_CHARS, RANGES, RunSettings
from sidecar_core.tasks import FREE, TASKS, task_of

DEFAULTS = RunSettings()

ORDER = (
    "suffix_masking",
    "document_masking",
    "draft_prompt",
    "draft_text",
    "positions",
    "gamma",
    "adaptive",
    "temperature",
    "top_p",
    "top_k",
    "max_tokens",
    "seed",
    "task",
    "task_suffix",
    "task_cue",
)
"""The components' order wherever they are inputs or outputs."""


def settings_of(*values: Any) -> RunSettings:
    """Settings from the components' values in `ORDER`. Raises SidecarError where one is out of
    range: browsers are kept to the limits by the sliders, other clients by this."""
    return settings_from(dict(zip(ORDER, values, strict=True)))


def settings_from(found: dict[str, Any]) -> RunSettings:
    """Settings by name as they come as JSON, where a whole number may be 4.0. Raises SidecarError,
    as `RunSettings.validate` does."""
    for name, limits in RANGES.items():
        value = found.get(name)
        if limits.integer and isinstance(value, float) and value.is_integer():
            found[name] = int(value)
    settings = RunSettings(**found).validate()
    task_of(settings)
    return settings


def values_of(settings: RunSettings) -> list[Any]:
    """The components' values for these settings, in `ORDER`. A task that was made in Python cannot
    be chosen on the page: then the task stays as it is."""
    values = {name: getattr(settings, name) for name in ORDER}
    if settings.task not in (*TASKS, FREE):
        values["task"] = gr.skip()
    return list(values.values())


def tasks() -> dict[str, Any]:
    """What the draft makes of the summary: one of the tasks, or one in the visitor's words."""
    with gr.Row(elem_id="task-row"):
        task = gr.Dropdown(
            [*((task.label, name) for name, task in TASKS.items()), ("Your own …", FREE)],
            value=DEFAULTS.task,
            label="The sidecar writes",
            elem_id="task",
        )
    with gr.Column(elem_id="own-task", visible=False, min_width=0) as own:
        suffix = gr.Textbox(
            DEFAULTS.task_suffix,
            label="Your instruction",
            placeholder="After the summary, output …",
            lines=2,
            max_lines=4,
            max_length=MAX_TASK_CHARS,
            elem_id="task-suffix",
        )
        cue = gr.Textbox(
            DEFAULTS.task_cue,
            label="The answer opens with",
            placeholder="for example “Questions:”; may be empty",
            lines=1,
            max_lines=2,
            max_length=MAX_TASK_CHARS,
            elem_id="task-cue",
        )
    task.change(None, task, own, js=f"(t) => ({{__type__: 'update', visible: t === '{FREE}'}})")
    return {"task": task, "task_suffix": suffix, "task_cue": cue}


def toggles() -> dict[str, Any]:
    """The two switches that the page is about."""
    return {
        "suffix_masking": gr.Checkbox(
            DEFAULTS.suffix_masking,
            label="Suffix masking",
            info="Hide “then output hashtags” from the draft until the summary is done.",
            elem_classes="switch",
            elem_id="suffix-masking",
        ),
        "document_masking": gr.Checkbox(
            DEFAULTS.document_masking,
            label="Document masking",
            info="Hide the article from the draft while it writes what comes behind the summary.",
            elem_classes="switch",
            elem_id="document-masking",
        ),
    }


def more() -> dict[str, Any]:
    """Everything else, for the accordion."""
    with gr.Row(elem_classes="choices"):
        draft_prompt = gr.Radio(
            [
                ("the article and the suffix (compound)", "compound"),
                ("what the target reads (identical)", "identical"),
                ("something unrelated", "unrelated"),
            ],
            value=DEFAULTS.draft_prompt,
            label="The draft reads",
            info="Whatever it reads, the summary stays the target's; only α changes.",
            elem_id="draft-prompt",
        )
        draft_text = gr.Textbox(
            DEFAULTS.draft_text,
            label="Unrelated text",
            info="Read by the draft instead of the article, if you choose so.",
            lines=1,
            max_lines=4,
            max_length=4000,
            elem_id="draft-text",
        )
        positions = gr.Radio(
            [("natural", "natural"), ("rebased", "rebased")],
            value=DEFAULTS.positions,
            label="Positions behind a masked suffix",
            info="Natural leaves the suffix's places free; rebased closes the gap.",
            elem_id="positions",
        )
    with gr.Row(elem_classes="sliders"):
        gamma = _slider("gamma", "γ: drafts per round", "0: no draft", 1)
        adaptive = gr.Checkbox(
            DEFAULTS.adaptive,
            label="Adapt γ",
            info="Draft as many as pay best, by the acceptance and the speed measured so far.",
            elem_id="adaptive",
            min_width=120,
        )
        max_tokens = _slider("max_tokens", "Longest summary", "in tokens", 1)
        temperature = _slider("temperature", "Temperature", "0: greedy", 0.05)
        top_p = _slider("top_p", "Top-p", "1: off", 0.01)
        top_k = _slider("top_k", "Top-k", "0: off", 1)
        seed = gr.Number(
            DEFAULTS.seed,
            label="Seed",
            info="matters above temperature 0",
            precision=0,
            minimum=RANGES["seed"].low,
            maximum=RANGES["seed"].high,
            elem_id="seed",
            min_width=120,
        )
    return {
        "draft_prompt": draft_prompt,
        "draft_text": draft_text,
        "positions": positions,
        "gamma": gamma,
        "adaptive": adaptive,
        "temperature": temperature,
        "top_p": top_p,
        "top_k": top_k,
        "max_tokens": max_tokens,
        "seed": seed,
    }


def stops(button: Any, session: Any) -> None:
    """Let `button` set the `stop` of the state in `session`.

    What was stopped says so itself. The handler has no outputs, since its answer could come behind
    the last view and cover it; the button is disabled in the browser.
    """
    button.click(
        lambda session: session.stop.set(),
        session,
        None,
        queue=False,
        show_progress="hidden",
        api_visibility="private",
    )
    button.click(None, None, button, js="() => ({__type__: 'update', interactive: false})")


def _slider(name: str, label: str, info: str, step: float) -> Any:
    limits = RANGES[name]
    return gr.Slider(
        limits.low,
        limits.high,
        value=getattr(DEFAULTS, name),
        step=step,
        label=label,
        info=info,
        buttons=[],
        elem_id=name.replace("_", "-"),
        min_width=120,
    )
