"""What comes from JSON is of the annotated type, or refused."""

from __future__ import annotations

import dataclasses
import json
import typing
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from sidecar_core.errors import SidecarError
from sidecar_core.events import EVENTS, from_json
from sidecar_core.schema import FieldError, build, fits
from tests.test_events import SAMPLES

ODD = [
    *(None, True, -2, 2**63, 10**400, 1.5, float("nan"), float("inf"), "", "text", "summary"),
    *([], [1], [[1]], ["a"], [["a", 1]], [["a", True]], {}, {"a": 1}, {"a": "b"}, {"a": [1]}),
]
"""A value of every shape that JSON has, and the numbers that are none."""


@dataclass(frozen=True)
class Thing:
    name: str
    count: int = 0
    share: float | None = None
    kind: Literal["big", 1] = 1
    pairs: tuple[tuple[str, int], ...] = ()
    both: tuple[int, int] = (0, 0)
    more: dict[str, Any] = dataclasses.field(default_factory=dict)
    on: bool = False


def test_a_thing_comes_back_with_its_lists_as_tuples() -> None:
    thing = Thing("x", 3, 0.5, "big", (("a", 1), ("b", 2)), (4, 5), {"k": None}, True)
    assert build(Thing, json.loads(json.dumps(dataclasses.asdict(thing)))) == thing
    assert build(Thing, {"name": "x"}) == Thing("x")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("name", v) for v in (None, 1, ["x"], True)),
        *(("count", v) for v in (True, 1.0, "1", -2, 2**63, None)),
        *(("share", v) for v in (True, "0.5", float("nan"), float("-inf"), 10**400, [0.5])),
        *(("kind", v) for v in ("small", True, 1.0, 2, None, [])),
        *(("pairs", v) for v in ([["a"]], [["a", 1, 2]], [["a", "b"]], ["ab"], "ab", {"a": 1})),
        *(("both", v) for v in ([], [1], [1, 2, 3], [1, 2.0], [[1, 2]])),
        *(("more", v) for v in ([], {"a": []}, {"a": {}}, {"a": float("nan")})),
        *(("on", v) for v in (0, 1, "true", None)),
        ("unknown", 1),
    ],
)
def test_a_value_of_another_type_is_refused(field: str, value: Any) -> None:
    with pytest.raises(FieldError, match=field):
        build(Thing, {"name": "x"} | {field: value})


@pytest.mark.parametrize("values", [None, [], "x", 1, {}])
def test_what_is_no_object_or_lacks_a_field_is_refused(values: Any) -> None:
    with pytest.raises(FieldError):
        build(Thing, values)


def test_whole_numbers_are_fine_where_a_float_is_asked_for() -> None:
    assert fits(3, float)
    assert fits(-0.5, float)


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: type(event).__name__)
def test_every_field_of_every_event_takes_its_own_type_and_no_other(event: Any) -> None:
    """Each odd value is put into each field: it comes through as it is, or is refused."""
    plain = {"event": type(event).__name__} | dataclasses.asdict(event)
    for name, kind in typing.get_type_hints(EVENTS[plain["event"]]).items():
        refused = 0
        for value in ODD:
            line = json.dumps(plain | {name: value})
            try:
                got = getattr(from_json(line), name)
            except SidecarError:
                refused += 1
            else:
                assert fits(value, kind)
                assert json.dumps(got) == json.dumps(value)
        assert refused >= len(ODD) // 2, name
