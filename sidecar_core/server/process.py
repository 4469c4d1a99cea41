"""The server as a process: little memory, an orderly end.

On SIGTERM or SIGINT runs are stopped, the server closes, child processes of a download or a
conversion end, and the exit code is 0. Before the server is up, and at a second signal, the process
ends immediately. Threads that download or load weights cannot be interrupted; they end with the
process.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

import psutil

RUNS_SECONDS = 3.0
"""How long runs may take to stop; they check between two forward passes. Together with the server's
own five seconds this stays below the ten seconds that hosts such as Docker wait."""

ARENAS = 2
"""One for the models, one for the page."""

M_ARENA_MAX = -8
"""From glibc's malloc.h."""


def limit_malloc_arenas() -> bool:
    """Keep glibc's heap in ARENAS arenas from now on; returns whether the C library accepted that.

    glibc gives each allocating thread an arena of its own, up to eight for each core, and memory
    that one run's threads freed is not reused by the next run's threads. With forty clients that
    cost 800 MB and kept growing. A MALLOC_ARENA_MAX in the environment takes precedence.
    """
    if sys.platform != "linux" or "MALLOC_ARENA_MAX" in os.environ:
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # not every C library has it
    return bool(mallopt and mallopt(M_ARENA_MAX, ARENAS))


class Shutdown:
    """Listens for signals from its construction on, which must be in the main thread."""

    def __init__(self) -> None:
        self._asked = False
        self._serving = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def wait_and(self, close: Callable[[], None]) -> NoReturn:
        """Serve until a signal arrives, then call `close` and end the process."""
        self._serving = True
        while not self._asked:  # no lock: the handler runs in this thread
            time.sleep(0.2)
        close()
        leave()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if not self._serving or self._asked:
            leave()
        self._asked = True


def leave(code: int = 0) -> NoReturn:
    """End this process and its child processes."""
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                child.terminate()
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
