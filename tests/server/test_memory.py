"""The heap under many threads."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

THREADS = """
import ctypes, sys, threading
from sidecar_core.server.process import limit_malloc_arenas
if "few" in sys.argv:
    limit_malloc_arenas()
libc = ctypes.CDLL(None)
together = threading.Barrier(12)
def allocate():
    together.wait()
    libc.malloc(1000)
    together.wait()
threads = [threading.Thread(target=allocate) for _ in range(12)]
for thread in threads: thread.start()
for thread in threads: thread.join()
libc.malloc_stats()
"""


def arenas(*arguments: str, **variables: str) -> int:
    """How many a process has in which twelve threads have allocated."""
    clean = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
    done = subprocess.run(
        [sys.executable, "-c", THREADS, *arguments],
        env=clean | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr.count("Arena ")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_threads_share_two_arenas_unless_the_environment_says_otherwise() -> None:
    assert arenas() > 2
    assert arenas("few") == 2
    assert arenas("few", MALLOC_ARENA_MAX="3") == 3
