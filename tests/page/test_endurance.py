"""Run after run in one process, some stopped, some left, some failing: nothing is left behind.

SIDECAR_ENDURANCE_RUNS=500 makes it as many; by default it is fewer, so that it takes seconds.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import statistics
import threading
import time
import weakref
from typing import Any

import psutil
import pytest

from sidecar_core.errors import SidecarError
from sidecar_core.host.model_host import ModelHost
from sidecar_core.host.session import Session
from sidecar_core.page import run as live
from sidecar_core.settings import RunSettings
from tests.faults import OUT_OF_MEMORY, before_each_pass
from tests.hosts import ready_host
from tests.tiny_pair import tiny_engine

RUNS = int(os.environ.get("SIDECAR_ENDURANCE_RUNS", "80"))
WORDS = ["The", "council", "voted", "on", "Tuesday", "to", "replace", "boilers", "quarter"]


def settings_by(chance: random.Random) -> RunSettings:
    return RunSettings(
        draft_prompt=chance.choice(["compound", "identical", "unrelated"]),
        suffix_masking=chance.random() < 0.5,
        document_masking=chance.random() < 0.5,
        positions=chance.choice(["natural", "rebased"]),
        gamma=chance.randint(0, 5),
        temperature=chance.choice([0.0, 0.7, 1.0]),
        max_tokens=chance.randint(1, 10),
        seed=chance.randint(0, 99),
        task="category",
    )


def one_run(host: ModelHost, session: Session, chance: random.Random) -> str:
    """A run in some way; says in which way it ended."""
    engine: Any = host.engine()
    article = " ".join(chance.choices(WORDS, k=chance.randint(3, 30)))
    way = chance.choice(["whole", "whole", "stopped", "left", "failing"])
    fails_at = chance.randint(1, 30) if way == "failing" else 0
    error = chance.choice([*OUT_OF_MEMORY, RuntimeError("broken")])

    def hook(number: int) -> None:
        if number == fails_at:
            raise error

    model = chance.choice([engine.pair.target, engine.pair.draft])
    with before_each_pass(model, hook), contextlib.suppress(SidecarError):
        views: Any = live.run(host, session, article, settings_by(chance), visitor="ann")
        for _ in views:
            if way == "stopped":
                session.stop.set()
            if way == "left":
                break
        views.close()
        while len(host.queue) or session.busy.locked():
            time.sleep(0.001)
    return way


@pytest.mark.slow
def test_many_runs_leave_no_memory_thread_file_or_session_behind() -> None:
    chance, process = random.Random(0), psutil.Process()
    engine = tiny_engine()
    engine.store.max_bytes = 1 << 22  # full after a few runs
    host = ready_host(engine)
    sessions: list[weakref.ref[Session]] = []
    rss: list[int] = []
    seen: set[str] = set()
    threads = files = 0
    for number in range(RUNS):
        if number == RUNS // 4:
            gc.collect()
            threads, files = threading.active_count(), process.num_fds()
        if number % 10 == 0:
            session = Session()
            sessions.append(weakref.ref(session))
        seen.add(one_run(host, session, chance))
        rss.append(process.memory_info().rss)
    del session
    gc.collect()
    quarter = RUNS // 4
    second = statistics.mean(rss[quarter : 2 * quarter])
    last = statistics.mean(rss[-quarter:])
    assert seen == {"whole", "stopped", "left", "failing"}
    assert last <= 1.05 * second
    assert threading.active_count() <= threads
    assert process.num_fds() <= files
    assert not any(reference() for reference in sessions)
    assert len(host.queue) == 0
    assert engine.store.nbytes <= engine.store.max_bytes
