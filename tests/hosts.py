"""Model hosts for tests, and waiting for what other threads do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sidecar_core.host.model_host import ModelHost


def until(condition: Callable[[], Any], seconds: float = 30) -> None:
    """Wait until `condition` holds, at most `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def host_of(engine: Any) -> ModelHost:
    """A host that loads `engine` in the background."""
    host = ModelHost(lambda progress: (engine, "a test's engine"))
    host.start()
    return host


def ready_host(engine: Any) -> ModelHost:
    """A host that has loaded `engine`."""
    host = host_of(engine)
    until(lambda: host.engine() is not None)
    return host
