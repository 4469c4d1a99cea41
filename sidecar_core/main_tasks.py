"""Main tasks: what the target is asked to write about the document.

The posts' is a summary in three bullets. Suffix, sidecar, labs and recordings work with any of
them; what the target writes is called the summary throughout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sidecar_core.errors import SidecarError, quoted
from sidecar_core.prompts import INSTRUCTION, clean
from sidecar_core.settings import MAX_TASK_CHARS, OWN, RunSettings
from sidecar_core.text import has_half_characters


@dataclass(frozen=True, slots=True)
class MainTask:
    """`name` is what settings call it, `label` what the page does, `instruction` what stands behind
    the document in both prompts."""

    name: str
    label: str
    instruction: str


SUMMARY = MainTask("summary", "3 bullets", INSTRUCTION)

PARAGRAPH = MainTask(
    "paragraph", "One paragraph", "\n\nSummarize the document in one paragraph of about 60 words."
)

PLAIN_LANGUAGE = MainTask(
    "plain-language",
    "Plain language",
    "\n\nRewrite the document in plain language for a reader of twelve, in at most 100 words.",
)

QUESTIONS = MainTask(
    "questions",
    "Key questions",
    "\n\nWrite the three most important questions that the document answers, each with its answer "
    "in one short sentence.",
)

MAIN_TASKS: Mapping[str, MainTask] = MappingProxyType(
    {task.name: task for task in (SUMMARY, PARAGRAPH, PLAIN_LANGUAGE, QUESTIONS)}
)
"""The main tasks that can be chosen by name."""


def main_task_of(settings: RunSettings) -> MainTask:
    """The main task that the settings name, or make of their own instruction. Raises SidecarError
    for a name that stands for none."""
    if settings.main_task == OWN:
        return MainTask(OWN, "Your instruction", "\n\n" + clean(settings.instruction))
    if settings.main_task not in MAIN_TASKS:
        known = ", ".join((*MAIN_TASKS, OWN))
        raise SidecarError(
            f"There is no main task {quoted(settings.main_task)}; choose one of {known}."
        )
    return MAIN_TASKS[settings.main_task]


def check_main_task(task: MainTask) -> MainTask:
    """The same main task, known to have an instruction. Raises SidecarError where it has none, or
    one that is too long."""
    if not isinstance(task, MainTask):
        raise SidecarError(
            f"{quoted(task)} is no MainTask; give one such as SUMMARY, or a name in "
            "RunSettings(main_task=…)."
        )
    if any(map(has_half_characters, (task.name, task.label, task.instruction))):
        raise SidecarError(
            f"The main task {task.name!r} contains half a character (a lone surrogate); type its "
            "texts again."
        )
    if not task.instruction.strip():
        raise SidecarError(f"The main task {task.name!r} needs an instruction.")
    if len(task.instruction) > MAX_TASK_CHARS + 2:
        raise SidecarError(
            f"The instruction of {task.name!r} is limited to {MAX_TASK_CHARS:,} characters; "
            "shorten it."
        )
    return task


def named_main_task(task: MainTask) -> dict[str, Any]:
    """The settings that name this main task: for one in a user's own words, the words."""
    own = {"instruction": task.instruction.strip()} if task.name == OWN else {}
    return {"main_task": task.name} | own
