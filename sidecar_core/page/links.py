"""Links that open the page with settings: query parameters to settings, and back.

A link may name an example or a recording that comes with the program. It contains only what differs
from the defaults, and never a visitor's article. Values are checked like all input; one invalid
value rejects the whole link.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from sidecar_core.errors import BadInput
from sidecar_core.main_tasks import main_task_of
from sidecar_core.scenarios import BY_KEY, Scenario, find_scenario
from sidecar_core.server.options import SWITCH
from sidecar_core.settings import AUTO, RANGES, RunSettings, renewed
from sidecar_core.tasks import task_of

SCENARIO = "scenario"
EXAMPLE = "example"
"""The key of an example article."""

RECORDING = "recording"
"""The name of a recording's file, without its ending. It brings its article and its settings."""

FIELDS = tuple(field.name for field in dataclasses.fields(RunSettings))


def from_query(query: Mapping[str, str]) -> tuple[RunSettings, Scenario | None]:
    """Settings and scenario of a link; foreign parameters (`__theme`) are ignored.

    A scenario overrides the link's draft prompt and toggles. Raises BadInput for an invalid value.
    """
    settings, query = RunSettings(), renewed(query)
    values = {name: _value(name, query[name], settings) for name in FIELDS if name in query}
    settings = dataclasses.replace(settings, **values).validate()
    task_of(settings)
    main_task_of(settings)
    if SCENARIO not in query:
        return settings, None
    scenario = find_scenario(query[SCENARIO])
    if scenario is None:
        raise BadInput(f"This link names an unknown scenario; choose from {', '.join(BY_KEY)}.")
    return scenario.apply(settings), scenario


def to_query(settings: RunSettings, **names: str) -> str:
    """The query string (without "?") that restores these settings; "" for the defaults. `names` are
    the values of SCENARIO, EXAMPLE and RECORDING, "" for none."""
    defaults = RunSettings()
    pairs = [(name, value) for name, value in names.items() if value]
    for name in FIELDS:
        value = getattr(settings, name)
        if value != getattr(defaults, name):
            pairs.append((name, str(int(value)) if isinstance(value, bool) else f"{value}"))
    return urlencode(pairs)


def _value(name: str, words: str, defaults: RunSettings) -> Any:
    if isinstance(getattr(defaults, name), bool):
        if words.lower() not in SWITCH:
            raise BadInput(f"{name} in this link must be 0 or 1.")
        return SWITCH[words.lower()]
    if name == "gamma" and words == AUTO:
        return AUTO
    if name in RANGES:
        try:
            return int(words) if RANGES[name].integer else float(words)
        except ValueError as error:
            kind = "a whole number" if RANGES[name].integer else "a number"
            raise BadInput(f"{name} in this link is not {kind}.") from error
    return words
