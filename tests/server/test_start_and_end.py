"""How the app starts and ends, as a process: bad options, signals, whatever is under way."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from sidecar_core.page.controls import values_of
from sidecar_core.settings import RunSettings
from tests.served import free_port
from tests.server.networks import listening, needs_ipv6
from tests.server.process import PATIENCE, ROOT, App, environment, running

SCRIPTED = """
import sidecar_core.host.model_host as model_host
from tests.runs import ScriptedEngine
engine = ScriptedEngine()
engine.pause = 0.5
model_host.load_engine = lambda *asked: lambda progress: (engine, "scripted")
import app
app.main()
"""
"""app.py over an engine that takes half a second for each event."""


@pytest.mark.parametrize(
    ("variable", "words"),
    [("GRADIO_SERVER_PORT", "abc"), ("SIDECAR_PASSWORD", ""), ("SIDECAR_LOG", "xml")],
)
def test_a_bad_variable_is_one_line_and_exit_code_2(
    tmp_path: Path, variable: str, words: str
) -> None:
    done = subprocess.run(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env=environment(tmp_path, **{variable: words}),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert variable in line


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("::1", marks=needs_ipv6)])
def test_a_port_that_is_taken_is_one_line_and_exit_code_2(tmp_path: Path, host: str) -> None:
    with listening(host) as taken:
        port = taken.getsockname()[1]
        env = environment(tmp_path, GRADIO_SERVER_NAME=host)
        with running(tmp_path / "log", port, env) as app:
            assert app.end() == 2
    (line,) = app.output.splitlines()
    assert f"Cannot listen on {host}, port {port}: Address already in use" in line


@pytest.mark.parametrize("host", ["nonsense.invalid", "203.0.113.7", "a" * 70])
def test_a_host_that_is_not_this_machine_is_one_line_and_exit_code_2(
    tmp_path: Path, host: str
) -> None:
    env = environment(tmp_path, GRADIO_SERVER_NAME=host)
    with running(tmp_path / "log", free_port(), env) as app:
        assert app.end() == 2
    (line,) = app.output.splitlines()
    assert host in line
    assert "--host" in line


def catches(process: subprocess.Popen[bytes], number: int) -> bool:
    """Whether it has a handler of its own for that signal."""
    words = Path(f"/proc/{process.pid}/status").read_text().split("SigCgt:")[1].split()[0]
    return bool(int(words, 16) >> (number - 1) & 1)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_a_signal_during_the_start_ends_it_with_code_0(tmp_path: Path) -> None:
    with running(tmp_path / "log", free_port(), environment(tmp_path)) as app:
        end = time.monotonic() + PATIENCE
        while not catches(app.process, signal.SIGTERM):
            assert time.monotonic() < end
            assert app.process.poll() is None, app.output
            time.sleep(0.001)
        app.process.send_signal(signal.SIGTERM)
        assert app.end() == 0
    assert "Traceback" not in app.output


@pytest.fixture
def silent() -> Iterator[str]:
    """A package index that takes connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(50)
        yield f"http://127.0.0.1:{server.getsockname()[1]}/simple"


@pytest.mark.slow
def test_a_signal_during_a_download_ends_it_and_what_it_started(
    tmp_path: Path, silent: str
) -> None:
    env = environment(tmp_path, SIDECAR_PAIR="coder", PIP_INDEX_URL=silent, PIP_TIMEOUT="900")
    del env["PIP_NO_INDEX"]
    with running(tmp_path / "log", free_port(), env) as app:
        app.until("loading")
        children = children_of(app)
        app.process.send_signal(signal.SIGTERM)
        assert app.end() == 0
    assert "Traceback" not in app.output
    gone, alive = psutil.wait_procs(children, 60)  # pip by itself would wait for 900
    assert not alive
    assert len(gone) == len(children)


def children_of(app: App) -> list[psutil.Process]:
    """Those of the app once it has any."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := psutil.Process(app.process.pid).children(recursive=True):
            return found
        assert app.process.poll() is None, app.output
        time.sleep(0.05)
    raise AssertionError(f"no child: {app.output}")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_running_run_and_ends_with_code_0(
    tmp_path: Path, number: signal.Signals
) -> None:
    from gradio_client import Client

    env = environment(tmp_path, SIDECAR_LOG="json", PYTHONPATH=str(ROOT))
    command = (sys.executable, "-c", SCRIPTED)
    with running(tmp_path / "log", free_port(), env, command) as app:
        app.until("ready")
        client = Client(app.url, verbose=False)
        job: Any = client.submit("Zanzibar", *values_of(RunSettings()), api_name="/run")
        end = time.monotonic() + PATIENCE
        while not job.outputs():
            assert time.monotonic() < end
            time.sleep(0.05)
        app.process.send_signal(number)
        assert app.end() == 0
    assert "Traceback" not in app.output
    lines = [json.loads(line) for line in app.output.splitlines() if line.startswith("{")]
    assert [line["outcome"] for line in lines if line["event"] == "run"] == ["stopped"]
    assert "Zanzibar" not in app.output
