"""The app as a process of its own, for tests of how it starts and ends."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300
"""Seconds for anything; a start takes a few on an idle machine, a minute on a busy one."""


def environment(home: Path, **changes: str) -> dict[str, str]:
    """A bare one: no settings of this machine, no network but this machine itself."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "OMP_NUM_THREADS")}
    dead = "http://127.0.0.1:9"
    return {
        **kept,
        "HOME": str(home),
        "SIDECAR_CACHE": str(home / "cache"),
        "HF_HOME": str(home / "hub"),
        "HTTP_PROXY": dead,
        "HTTPS_PROXY": dead,
        "NO_PROXY": "127.0.0.1,localhost",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PYTHONUNBUFFERED": "1",
        **changes,
    }


class App:
    """A running app; `output` is all that it wrote."""

    def __init__(
        self, process: subprocess.Popen[bytes], log: Path, port: int, host: str = "127.0.0.1"
    ) -> None:
        self.process, self.log, self.port = process, log, port
        self.url = f"http://{host}:{port}/"

    @property
    def output(self) -> str:
        return self.log.read_text("utf-8", errors="replace")

    def health(self) -> httpx.Response | None:
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(self.url + "healthz", timeout=10)
        return None

    def until(self, status: str) -> httpx.Response:
        """Its health once it says so."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            answer = self.health()
            if answer is not None and answer.json()["status"] == status:
                return answer
            assert self.process.poll() is None, self.output
            time.sleep(0.05)
        raise AssertionError(f"never {status}: {self.output}")

    def until_said(self, words: str) -> str:
        """Its output once `words` are in it."""
        end = time.monotonic() + PATIENCE
        while words not in self.output:
            assert time.monotonic() < end, self.output
            assert self.process.poll() is None, self.output
            time.sleep(0.05)
        return self.output

    def end(self) -> int:
        """Its exit code."""
        return self.process.wait(PATIENCE)


@contextlib.contextmanager
def running(
    log: Path,
    port: int,
    env: Mapping[str, str],
    command: Sequence[str] = (sys.executable, "app.py"),
    cwd: Path = ROOT,
    host: str = "127.0.0.1",
) -> Iterator[App]:
    """The app, ended at the end whatever happened; it is asked at `host`."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            list(command),
            cwd=cwd,
            env={**env, "GRADIO_SERVER_PORT": str(port)},
            stdout=out,
            stderr=out,
        )
    try:
        yield App(process, log, port, host)
    finally:
        process.kill()
        process.wait()
