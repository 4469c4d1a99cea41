"""From JSON to frozen dataclasses: a value is of its field's annotated type, or it is refused.

Understands what the events are made of: str, bool, int, float, None, Literal, unions, tuples (lists
in JSON) and dicts by name. An `int` is a count, an index, or -1 for none; it is below 2⁶³. A
`float` is any finite number, `Any` one plain value. Truth values are no numbers.
"""

from __future__ import annotations

import dataclasses
import sys
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


class FieldError(ValueError):
    """Says in a few words what is wrong with a JSON object; never reaches a user by itself."""


def build(cls: type[T], values: Any) -> T:
    """An instance of the dataclass `cls` from a JSON object. Raises FieldError that says which
    field does not fit, is missing or is none of the class's."""
    if not isinstance(values, dict):
        raise FieldError("it is not a JSON object")
    kinds, required = _fields(cls)  # type: ignore[arg-type]
    for name, value in values.items():
        if name not in kinds:
            raise FieldError(f"a {cls.__name__} has no field {name[:40]!r}")
        if not fits(value, kinds[name]):
            raise FieldError(f"{name!r} has an invalid value")
    missing = [name for name in required if name not in values]
    if missing:
        raise FieldError(f"{missing[0]!r} is missing")
    return cls(**{name: _as_tuple(value) for name, value in values.items()})


def fits(value: Any, kind: Any) -> bool:
    """Whether a value that came from JSON is of this annotation."""
    inner = get_args(kind)
    origin = get_origin(kind)
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in inner)
    if origin is UnionType:
        return any(fits(value, choice) for choice in inner)
    if origin is tuple:
        if not isinstance(value, list):
            return False
        if inner[-1] is Ellipsis:
            return all(fits(part, inner[0]) for part in value)
        return len(value) == len(inner) and all(map(fits, value, inner))
    if origin is dict:
        return isinstance(value, dict) and all(fits(part, inner[1]) for part in value.values())
    if kind is Any:
        return any(fits(value, plain) for plain in (str, bool, float, NoneType))
    if kind is int:
        return type(value) is int and -1 <= value < 2**63
    if kind is float:  # comparing is safe for integers of any size, and false for NaN
        return type(value) in (int, float) and abs(value) <= sys.float_info.max
    return type(value) is kind


@cache
def _fields(cls: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The annotations of a dataclass, and the names of the fields that have no default."""
    required = tuple(
        field.name
        for field in dataclasses.fields(cls)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    )
    return get_type_hints(cls), required


def _as_tuple(value: Any) -> Any:
    return tuple(_as_tuple(part) for part in value) if isinstance(value, list) else value
