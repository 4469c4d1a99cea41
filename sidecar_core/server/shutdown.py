"""An orderly end on SIGTERM and SIGINT, whatever is under way.

Running runs are stopped, the server closes, processes that were started for a download or a
conversion end, and the exit code is 0. Before the server is up, and at a second signal, the end
comes at once. Threads that are in the middle of a download or of loading weights are left to the
end of the process: nobody could wait for them.
"""

from __future__ import annotations

import contextlib
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
"""How long runs may take to stop; a run hears of it between two forward passes. With the server's
own five seconds this stays under the ten that hosts such as Docker wait."""


class Shutdown:
    """Listens for signals from the moment that it is made, in the main thread."""

    def __init__(self) -> None:
        self._asked = False
        self._serving = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def wait_and(self, close: Callable[[], None]) -> NoReturn:
        """Serve until a signal comes, then `close` and end the process."""
        self._serving = True
        while not self._asked:  # no lock: the handler runs in this very thread
            time.sleep(0.2)
        close()
        leave()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if not self._serving or self._asked:
            leave()
        self._asked = True


def leave(code: int = 0) -> NoReturn:
    """End this process and those that it started."""
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                child.terminate()
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
