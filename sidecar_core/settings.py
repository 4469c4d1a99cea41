"""The settings of a run and their limits. Both are defined here and nowhere else."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from sidecar_core.errors import BadInput, quoted
from sidecar_core.text import has_half_characters

DraftPrompt = Literal["compound", "identical", "unrelated"]
Positions = Literal["natural", "rebased"]
Precision = Literal["fp32", "bf16", "int8"]

AUTO: Literal["auto"] = "auto"
"""The draft length that drafts as many tokens as pay."""

COMPARED_GAMMA = 4
"""The draft length of scenarios and experiments, unless another number is asked for: α is then a
mean over places that do not depend on what pays."""

PRECISIONS = ("auto", *get_args(Precision))
"""What a pair can be asked to load in; "auto" lets the machine decide."""

MAX_ARTICLE_CHARS = 200_000
"""Longer text is refused before it is tokenised."""

MAX_TASK_CHARS = 2_000
"""Longest suffix and longest cue of a sidecar task, and longest instruction of a main task."""

OWN = "own"
"""The name of the main task in a user's own words."""

MAX_ARTICLE_TOKENS = 4_096
"""Longer articles are refused with their token count; nothing is cut silently."""


@dataclass(frozen=True, slots=True)
class Range:
    """Inclusive limits of one number, `integer` or not."""

    low: float
    high: float
    integer: bool = False


RANGES = {
    "gamma": Range(0, 16, integer=True),
    "temperature": Range(0.0, 2.0),
    "top_k": Range(0, 1_000, integer=True),
    "top_p": Range(0.01, 1.0),
    "max_tokens": Range(1, 512, integer=True),
    "seed": Range(0, 2**31 - 1, integer=True),
}
"""Limits of every numeric setting, for `validate` and for the page's sliders."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """One run's settings. `validate()` raises BadInput; everything downstream trusts them.

    `gamma` tokens are drafted per round (0: plain decoding by the target alone); with "auto", a
    block ends where one more token would cost more than it brings. `top_k` 0 and `top_p` 1 switch
    those filters off; `temperature` 0 is greedy. `main_task` names what the target writes; "own"
    is what `instruction` says. `task` names a sidecar task; the task "free" is made of
    `task_suffix` and `task_cue`.
    """

    draft_prompt: DraftPrompt = "compound"
    draft_text: str = "Yankee Doodle"
    suffix_masking: bool = True
    document_masking: bool = True
    positions: Positions = "natural"
    gamma: int | Literal["auto"] = AUTO
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    max_tokens: int = 160
    seed: int = 0
    main_task: str = "summary"
    instruction: str = ""
    task: str = "hashtags"
    task_suffix: str = ""
    task_cue: str = ""

    def validate(self) -> RunSettings:
        """Itself, or BadInput naming the field, its value and its limits."""
        for name, limits in RANGES.items():
            if not (name == "gamma" and self.gamma == AUTO):
                _check_number(name, getattr(self, name), limits)
        for name, choices in (
            ("draft_prompt", get_args(DraftPrompt)),
            ("positions", get_args(Positions)),
        ):
            if (value := getattr(self, name)) not in choices:
                raise BadInput(f"{name} is {quoted(value)}; choose one of {', '.join(choices)}.")
        for name in ("suffix_masking", "document_masking"):
            if not isinstance(value := getattr(self, name), bool):
                raise BadInput(f"{name} is {quoted(value)}; it must be true or false.")
        if not isinstance(self.draft_text, str) or len(self.draft_text) > 4_000:
            raise BadInput("The draft text must be text of at most 4,000 characters.")
        if self.draft_prompt == "unrelated" and not self.draft_text.strip():
            raise BadInput("An unrelated draft prompt needs some text; type a few words.")
        for name in ("task", "main_task"):
            if not isinstance(getattr(self, name), str):
                raise BadInput(f"The {name.replace('_', ' ')} must be given by its name.")
            _check_characters(f"The {name.replace('_', ' ')}'s name", getattr(self, name))
        if not isinstance(self.instruction, str) or len(self.instruction) > MAX_TASK_CHARS:
            raise BadInput(
                f"The instruction must be text of at most {MAX_TASK_CHARS:,} characters."
            )
        _check_characters("The instruction", self.instruction)
        if self.main_task == OWN and not self.instruction.strip():
            raise BadInput("A main task of your own needs an instruction; type a sentence.")
        _check_characters("The draft text", self.draft_text)
        for name in ("task_suffix", "task_cue"):
            value = getattr(self, name)
            if not isinstance(value, str) or len(value) > MAX_TASK_CHARS:
                raise BadInput(
                    f"The task's {name[5:]} must be text of at most {MAX_TASK_CHARS:,} characters."
                )
            _check_characters(f"The task's {name[5:]}", value)
        if self.task == "free" and not self.task_suffix.strip():
            raise BadInput("A task of your own needs an instruction; type a sentence.")
        return self

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def renewed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name as an earlier version wrote them, in today's names: it had a switch
    `adaptive` beside a γ."""
    found = dict(values)
    if str(found.pop("adaptive", False)).lower() in ("1", "true", "on", "yes"):
        found["gamma"] = AUTO
    return found


def _check_characters(what: str, text: str) -> None:
    """Refuses what could be run but not be saved and read again."""
    if has_half_characters(text):
        raise BadInput(f"{what} contains half a character (a lone surrogate); type it again.")


def _check_number(name: str, value: Any, limits: Range) -> None:
    span = f"from {limits.low:g} to {limits.high:,.10g}"
    if name == "gamma":
        span += f" or {AUTO}"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number:
        raise BadInput(f"{name} is {quoted(value)}; it must be a number {span}.")
    if not limits.low <= value <= limits.high:  # never so for NaN, and safe for huge integers
        raise BadInput(f"{name} is {quoted(value)}; it must be {span}.")
    if limits.integer and value != int(value):
        raise BadInput(f"{name} is {quoted(value)}; it must be a whole number {span}.")
