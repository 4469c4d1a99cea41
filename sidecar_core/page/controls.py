"""The components for a run's settings, and the conversion of their values from and to
`RunSettings`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr

from sidecar_core.main_tasks import MAIN_TASKS, main_task_of
from sidecar_core.settings import AUTO, MAX_TASK_CHARS, OWN, RANGES, RunSettings
from sidecar_core.tasks import FREE, TASKS, task_of

DEFAULTS = RunSettings()


@dataclass(frozen=True, slots=True)
class RunInputs:
    """What the page holds when a run is asked for: the values of the components as a browser or a
    program sent them, unchecked. The order of the fields is that of `/run`'s parameters."""

    article: str
    suffix_masking: Any
    document_masking: Any
    draft_prompt: Any
    draft_text: Any
    positions: Any
    gamma: Any
    temperature: Any
    top_p: Any
    top_k: Any
    max_tokens: Any
    seed: Any
    main_task: Any
    instruction: Any
    task: Any
    task_suffix: Any
    task_cue: Any

    def settings(self) -> RunSettings:
        """The settings among the values. Raises BadInput if one is out of range: sliders keep
        browsers within the limits, but not other clients."""
        return checked_settings({name: getattr(self, name) for name in SETTINGS})


SETTINGS = tuple(field.name for field in dataclasses.fields(RunInputs))[1:]
"""The fields of RunInputs that are settings."""


def checked_settings(found: Mapping[str, Any]) -> RunSettings:
    """Settings by name as they come in JSON, where a whole number may be 4.0. Raises BadInput, as
    `RunSettings.validate` does."""
    values = dict(found)
    for name, limits in RANGES.items():
        value = values.get(name)
        if limits.integer and isinstance(value, float) and value.is_integer():
            values[name] = int(value)
    settings = RunSettings(**values).validate()
    task_of(settings)
    main_task_of(settings)
    return settings


def values_of(settings: RunSettings) -> list[Any]:
    """The components' values for these settings, in the order of `SETTINGS`. The page cannot show a
    task that was made in Python; it then keeps the one that is chosen."""
    values = {name: getattr(settings, name) for name in SETTINGS}
    if settings.task not in (*TASKS, FREE):
        values["task"] = gr.skip()
    if settings.main_task not in (*MAIN_TASKS, OWN):
        values["main_task"] = gr.skip()
    return list(values.values())


def tasks() -> dict[str, Any]:
    """The main task and the sidecar's: one of the list each, or one in the visitor's own words."""
    with gr.Row(elem_id="task-row"):
        main = gr.Dropdown(
            [*((task.label, name) for name, task in MAIN_TASKS.items()), ("Your own …", OWN)],
            value=DEFAULTS.main_task,
            label="The target writes",
            elem_id="main-task",
            min_width=120,
        )
        task = gr.Dropdown(
            [*((task.label, name) for name, task in TASKS.items()), ("Your own …", FREE)],
            value=DEFAULTS.task,
            label="The sidecar writes",
            elem_id="task",
            min_width=120,
        )
    with gr.Column(elem_id="own-main-task", visible=False, min_width=0) as own_main:
        instruction = gr.Textbox(
            DEFAULTS.instruction,
            label="The target's instruction",
            placeholder="Write a letter to the editor about the document.",
            lines=2,
            max_lines=4,
            max_length=MAX_TASK_CHARS,
            elem_id="instruction",
        )
    with gr.Column(elem_id="own-task", visible=False, min_width=0) as own:
        suffix = gr.Textbox(
            DEFAULTS.task_suffix,
            label="The sidecar's instruction",
            placeholder="After the summary, output …",
            lines=2,
            max_lines=4,
            max_length=MAX_TASK_CHARS,
            elem_id="task-suffix",
        )
        cue = gr.Textbox(
            DEFAULTS.task_cue,
            label="The answer begins with",
            placeholder="optional, for example “Questions:”",
            lines=1,
            max_lines=2,
            max_length=MAX_TASK_CHARS,
            elem_id="task-cue",
        )
    for chosen, column, name in ((main, own_main, OWN), (task, own, FREE)):
        shown = f"(t) => ({{__type__: 'update', visible: t === '{name}'}})"
        chosen.change(None, chosen, column, js=shown)
    return {
        "main_task": main,
        "instruction": instruction,
        "task": task,
        "task_suffix": suffix,
        "task_cue": cue,
    }


def toggles() -> dict[str, Any]:
    """The two switches that the page is about."""
    return {
        "suffix_masking": gr.Checkbox(
            DEFAULTS.suffix_masking,
            label="Suffix masking",
            info="Mask the tag instruction until the summary is finished.",
            elem_classes="switch",
            elem_id="suffix-masking",
        ),
        "document_masking": gr.Checkbox(
            DEFAULTS.document_masking,
            label="Document masking",
            info="Mask the article while the draft writes the tags.",
            elem_classes="switch",
            elem_id="document-masking",
        ),
    }


def more() -> dict[str, Any]:
    """All other settings, for the accordion."""
    with gr.Row(elem_classes="choices"):
        draft_prompt = gr.Radio(
            [
                ("article and suffix (compound)", "compound"),
                ("the target's prompt (identical)", "identical"),
                ("an unrelated text (unrelated)", "unrelated"),
            ],
            value=DEFAULTS.draft_prompt,
            label="The draft reads",
            info="At temperature 0 the summary stays the same; only α and the speed change.",
            elem_id="draft-prompt",
        )
        draft_text = gr.Textbox(
            DEFAULTS.draft_text,
            label="Unrelated text",
            info="The draft reads it instead of the article if you choose “unrelated”.",
            lines=1,
            max_lines=4,
            max_length=4000,
            elem_id="draft-text",
        )
        positions = gr.Radio(
            [("natural", "natural"), ("rebased", "rebased")],
            value=DEFAULTS.positions,
            label="Positions after a masked suffix",
            info="Natural keeps the suffix's positions free; rebased closes the gap.",
            elem_id="positions",
        )
    with gr.Row(elem_classes="sliders"):
        gamma = gr.Dropdown(
            [AUTO, *range(int(RANGES["gamma"].low), int(RANGES["gamma"].high) + 1)],
            value=DEFAULTS.gamma,
            label="γ: drafts per round",
            info="auto: a round ends when another token would cost more than it brings",
            elem_id="gamma",
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
        "temperature": temperature,
        "top_p": top_p,
        "top_k": top_k,
        "max_tokens": max_tokens,
        "seed": seed,
    }


def stops(button: Any, session: Any) -> None:
    """Make `button` set the `stop` of the state in `session`.

    The stopped work shows the message. The handler has no outputs: they could arrive after the last
    view and overwrite it. The browser disables the button.
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
