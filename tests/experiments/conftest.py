"""A tiny pair and articles for the commands that measure tags."""

from __future__ import annotations

import json

import pytest

from sidecar_core.decoding.engine import Engine
from sidecar_core.models import loading
from tests.experiments.calls import TEXTS
from tests.tiny_pair import tiny_engine


@pytest.fixture
def engine(monkeypatch, tmp_path) -> Engine:
    """Commands load this engine's pair; what they keep goes into a folder of the test."""
    made = tiny_engine()
    monkeypatch.setattr(loading, "load_pair", lambda *_, **__: made.pair)
    monkeypatch.setenv("SIDECAR_CACHE", str(tmp_path / "cache"))
    return made


@pytest.fixture
def article(tmp_path) -> str:
    path = tmp_path / "article.txt"
    path.write_text(TEXTS[0])
    return str(path)


@pytest.fixture
def corpus(tmp_path) -> str:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    return str(path)


@pytest.fixture
def huge(tmp_path) -> str:
    """A file of 13 MB, too large for any text."""
    path = tmp_path / "huge.txt"
    with path.open("wb") as file:
        file.truncate(13_000_000)
    return str(path)
