"""The examples in docstrings of the experiments and of decoding hold."""

from __future__ import annotations

import doctest
import importlib.util
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import sidecar_core.decoding
import sidecar_core.experiments


def with_examples() -> Iterator[str]:
    """Modules whose source holds a doctest; the others need no import."""
    for package in (sidecar_core.decoding, sidecar_core.experiments):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            spec = importlib.util.find_spec(found.name)
            assert spec is not None
            assert spec.origin is not None
            if ">>> " in Path(spec.origin).read_text("utf-8"):
                yield found.name


@pytest.mark.parametrize("name", with_examples())
def test_the_examples_hold(name: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0
    assert failed == 0
