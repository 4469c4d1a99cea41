from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from sidecar_core.errors import SidecarError
from sidecar_core.settings import RANGES, RunSettings
from sidecar_core.tasks import TASKS

DEEP: list[Any] = []
for _ in range(5_000):
    DEEP = [DEEP]


def test_the_defaults_are_valid_and_name_a_task() -> None:
    assert RunSettings().validate() == RunSettings()
    assert RunSettings().task in TASKS


def test_every_number_has_limits() -> None:
    numbers = {
        field.name
        for field in dataclasses.fields(RunSettings)
        if type(field.default) in (int, float) or field.name == "gamma"
    }
    assert numbers == set(RANGES)


@pytest.mark.parametrize("name", RANGES)
def test_limits_are_inclusive(name: str) -> None:
    limits = RANGES[name]
    for value in (limits.low, limits.high):
        number = int(value) if limits.integer else value
        settings = dataclasses.replace(RunSettings(), **{name: number})
        assert settings.validate() is settings


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize(
    "bad",
    [
        *("below", "above", float("nan"), float("inf"), 10**400, -(10**5000)),
        *("4", None, True, [4], {"a": 1}, DEEP),
    ],
    ids=lambda bad: type(bad).__name__,
)
def test_numbers_outside_their_limits_or_of_another_type_are_named(name: str, bad: Any) -> None:
    limits = RANGES[name]
    value = (
        {"below": limits.low - 1, "above": limits.high + 1}.get(bad, bad)
        if isinstance(bad, str)
        else bad
    )
    with pytest.raises(SidecarError, match=rf"^{name} is .*from {limits.low:g}") as error:
        dataclasses.replace(RunSettings(), **{name: value}).validate()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", [name for name, limits in RANGES.items() if limits.integer])
def test_whole_numbers_must_be_whole(name: str) -> None:
    with pytest.raises(SidecarError, match="whole number"):
        dataclasses.replace(RunSettings(), **{name: RANGES[name].low + 0.5}).validate()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"draft_prompt": "other"}, "compound, identical, unrelated"),
        ({"draft_prompt": None}, "draft_prompt is None"),
        ({"positions": "absolute"}, "natural, rebased"),
        ({"positions": ["natural"]}, "positions"),
        ({"suffix_masking": "yes"}, "suffix_masking is 'yes'"),
        ({"document_masking": 1}, "document_masking is 1"),
        ({"draft_text": "a" * 4_001}, "4,000"),
        ({"draft_text": None}, "4,000"),
        ({"draft_prompt": "unrelated", "draft_text": " \n"}, "type a few words"),
        ({"task": "free"}, "needs an instruction"),
        ({"task": "free", "task_suffix": "a" * 2_001}, "suffix must be text of at most 2,000"),
        ({"task_cue": None}, "cue must be text"),
        ({"task": 3}, "task"),
        ({"draft_text": "a\ud800"}, "draft text contains half a character"),
        ({"task_suffix": "\udc80"}, "suffix contains half a character"),
        ({"task_cue": "\udfff"}, "cue contains half a character"),
        ({"task": "\ud83d"}, "name contains half a character"),
    ],
)
def test_other_bad_settings_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SidecarError, match=message):
        dataclasses.replace(RunSettings(), **change).validate()


def test_an_empty_draft_text_is_fine_where_it_is_not_used() -> None:
    assert RunSettings(draft_text="").validate()


def test_settings_survive_json() -> None:
    settings = RunSettings(draft_prompt="unrelated", gamma=0, temperature=0.7, seed=7)
    assert RunSettings(**json.loads(json.dumps(settings.as_dict()))) == settings
