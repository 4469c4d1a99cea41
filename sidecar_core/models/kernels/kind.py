"""Which kernels a forward pass takes: decided by what the pass is for, never by its size.

A verified token must be what the target would have said by itself. So a row of a decoding or
verification pass is computed alike whether one row is in the pass or nine, and the columns that it
attends to do not depend on how the prompt was cut into chunks. Three kinds of passes:

- "decode": drafting, verification, tags. Linear layers take a kernel that computes each row by
  itself, and attention takes one row after another.
- "read": prompts, many rows at a time. Linear layers take a kernel for many rows; attention takes
  blocks of `BLOCK` rows, which begin at multiples of `BLOCK` columns.
- "masked": the same with a mask that is not causal; attention takes all rows at once.

Decoding differs from the others in rounding (in int8 by a few thousandths), which does no harm as
long as the same tokens are always read by the same kind of pass. `calibration` checks on the
machine at hand that rows do not depend on each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

Kind = Literal["decode", "read", "masked"]

BLOCK = 32
"""Rows that attention takes at a time while a prompt is read. Chunks are multiples of it."""

_kind: ContextVar[Kind] = ContextVar("kind of the forward pass", default="masked")


@contextmanager
def pass_kind(kind: Kind) -> Iterator[None]:
    """Every layer that runs inside, in this thread, belongs to a pass of this kind."""
    token = _kind.set(kind)
    try:
        yield
    finally:
        _kind.reset(token)


def kind_of_pass() -> Kind:
    """The kind of the pass under way."""
    return _kind.get()


def decodes() -> bool:
    """Whether the pass under way is a decoding or verification pass."""
    return _kind.get() == "decode"
