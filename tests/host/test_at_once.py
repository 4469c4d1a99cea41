"""Several runs at the models at once, as on a GPU: each is what it is alone."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from sidecar_core.events import TagsFinished, TokenEvent
from sidecar_core.host.model_host import ModelHost
from sidecar_core.host.session import Session
from sidecar_core.page import run as live
from sidecar_core.settings import RunSettings
from tests.hosts import host_of
from tests.tiny_pair import tiny_engine

ARTICLES = [
    "The council voted on Tuesday to replace the boilers.",
    "You are a concise assistant of the old quarter. " * 4,
    "Keep each bullet under 18 words. " * 9,
    "The old quarter voted. " * 2,
]
SETTINGS = [
    RunSettings(max_tokens=24, gamma=3, task="category"),
    RunSettings(max_tokens=24, gamma=2, temperature=1.0, seed=4, suffix_masking=False),
]


def outcome(
    host: ModelHost, article: str, settings: RunSettings, seen: Callable[[], None] = lambda: None
) -> tuple[list[object], list[float]]:
    """What a visitor of their own gets: every token and tag, and every probability."""
    session = Session()
    for _ in live.run(host, session, article, settings):
        seen()
    assert session.recording is not None
    tokens = [e for e in session.recording.events if isinstance(e, TokenEvent)]
    tags = [e.text for e in session.recording.events if isinstance(e, TagsFinished)]
    chances = [v for e in tokens for v in (e.p, e.q, e.overlap, e.u) if v is not None]
    return [*((type(e), e.id) for e in tokens), *tags], chances


def host_for(at_once: int) -> ModelHost:
    engine = tiny_engine()
    engine.runs_at_once = at_once
    return host_of(engine)


@pytest.mark.slow
def test_runs_beside_each_other_give_what_each_gives_alone() -> None:
    asked = [(article, settings) for article in ARTICLES for settings in SETTINGS]
    alone = [outcome(host_for(1), *one) for one in asked]
    host = host_for(len(asked))
    beside: dict[int, tuple[list[object], list[float]]] = {}
    together, most = threading.Barrier(len(asked)), [0]

    def seen() -> None:
        most[0] = max(most[0], len(host.queue) - host.queue.waiting())

    def visit(number: int) -> None:
        together.wait()
        beside[number] = outcome(host, *asked[number], seen)

    visitors = [threading.Thread(target=visit, args=(n,)) for n in range(len(asked))]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()
    assert most[0] > 1
    for number, (said, chances) in enumerate(alone):
        assert beside[number][0] == said
        assert beside[number][1] == pytest.approx(chances, abs=1e-4)
