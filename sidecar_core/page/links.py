"""Links that open the page with settings: query parameters to settings and back.

Only what differs from the defaults is written, and never the article. Values are checked like any
other input; a link that does not fit is refused as a whole.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from sidecar_core.errors import SidecarError
from sidecar_core.scenarios import BY_KEY, Scenario
from sidecar_core.server.options import SWITCH
from sidecar_core.settings import RANGES, RunSettings
from sidecar_core.tasks import task_of

SCENARIO = "scenario"
FIELDS = tuple(field.name for field in dataclasses.fields(RunSettings))


def from_query(query: Mapping[str, str]) -> tuple[RunSettings, Scenario | None]:
    """Settings and scenario of a link; parameters that are not ours (`__theme`) are passed over.

    A scenario sets the draft prompt and the toggles, whatever the link says beside it. Raises
    SidecarError for a value that does not fit.
    """
    settings = RunSettings()
    values = {name: _value(name, query[name], settings) for name in FIELDS if name in query}
    settings = dataclasses.replace(settings, **values).validate()
    task_of(settings)
    key = query.get(SCENARIO)
    if key is None:
        return settings, None
    if key not in BY_KEY:
        raise SidecarError(f"This link names no known scenario; choose one of {', '.join(BY_KEY)}.")
    return BY_KEY[key].apply(settings), BY_KEY[key]


def to_query(settings: RunSettings) -> str:
    """The query string (without "?") that brings these settings back; "" for the defaults."""
    defaults = RunSettings()
    pairs = []
    for name in FIELDS:
        value = getattr(settings, name)
        if value != getattr(defaults, name):
            pairs.append((name, str(int(value)) if isinstance(value, bool) else f"{value}"))
    return urlencode(pairs)


def _value(name: str, words: str, defaults: RunSettings) -> Any:
    if isinstance(getattr(defaults, name), bool):
        if words.lower() not in SWITCH:
            raise SidecarError(f"{name} in this link must be 0 or 1.")
        return SWITCH[words.lower()]
    if name in RANGES:
        try:
            return int(words) if RANGES[name].integer else float(words)
        except ValueError as error:
            kind = "a whole number" if RANGES[name].integer else "a number"
            raise SidecarError(f"{name} in this link is not {kind}.") from error
    return words
