"""The folder in which weights are kept, and how things get into it whole or not at all.

Files and folders are built under a temporary name and moved into place in one step, under a lock,
so that a killed process leaves nothing that could be taken for the real thing. Whether a kept file
is still what it was is answered by its SHA-256, which is computed again only when its size or time
of change differs from what was noted.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import filelock

from sidecar_core.errors import SidecarError
from sidecar_core.events import LoadProgress

Progress = Callable[[LoadProgress], None]

_CHUNK = 1 << 22


def silent(_: LoadProgress) -> None:
    """A `Progress` that shows nothing."""


def cache_dir() -> Path:
    """`SIDECAR_CACHE`, else `speculative-sidecar` in the user's cache folder. Not yet created."""
    if named := os.environ.get("SIDECAR_CACHE"):
        return Path(named).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "speculative-sidecar"


@contextlib.contextmanager
def storage_errors(doing: str) -> Iterator[None]:
    """Turns a full, read-only or forbidden disk into a SidecarError that names the cache folder."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            what = "the disk is full; free some space"
        elif error.errno in (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST):
            what = "it cannot be written; change its permissions"
        else:
            what = f"{error.strerror or error}; check the disk"
        raise SidecarError(
            f"{doing} failed in the cache folder {cache_dir()}: {what}, or set SIDECAR_CACHE to "
            "another folder."
        ) from error


def require_space(needed: int, doing: str) -> None:
    """SidecarError unless `needed` bytes (and a twentieth more) are free in the cache folder."""
    with storage_errors(doing):
        cache_dir().mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(cache_dir()).free
    if free < needed * 1.05:
        raise SidecarError(
            f"{doing} needs {needed * 1.05 / 1e9:.1f} GB and the cache folder {cache_dir()} has "
            f"{free / 1e9:.1f} GB left; free some space or set SIDECAR_CACHE to another folder."
        )


@contextlib.contextmanager
def locked(name: str, progress: Progress) -> Iterator[None]:
    """Holds the cache's lock `name`; one process or thread at a time, the others wait."""
    folder = cache_dir() / "locks"
    lock = filelock.FileLock(folder / f"{name}.lock")
    with storage_errors("Taking a lock"):
        folder.mkdir(parents=True, exist_ok=True)
        while not _acquire(lock):
            progress(LoadProgress(f"Waiting for another process that prepares {name}"))
    try:
        yield
    finally:
        lock.release()


def _acquire(lock: filelock.BaseFileLock) -> bool:
    try:
        lock.acquire(timeout=1)
    except filelock.Timeout:
        return False
    return True


def sha256_of(path: Path, tick: Callable[[int], None] = lambda done: None) -> str:
    """SHA-256 of a file in hexadecimal; `tick` hears the bytes read so far."""
    digest = hashlib.sha256()
    done = 0
    with path.open("rb") as file:
        while block := file.read(_CHUNK):
            digest.update(block)
            done += len(block)
            tick(done)
    return digest.hexdigest()


def known_sha256(path: Path) -> str:
    """SHA-256 of a file, from the cache's notes while its size and time of change are the same."""
    with contextlib.suppress(OSError, ValueError):
        noted = json.loads(_note(path).read_text(encoding="utf-8"))
        if isinstance(noted, dict) and _state(path).items() <= noted.items():
            return str(noted["sha256"])
    digest = sha256_of(path)
    note_sha256(path, digest)
    return digest


def note_sha256(path: Path, digest: str) -> None:
    """Notes the SHA-256 that a file was just found to have."""
    with contextlib.suppress(OSError):  # a note saves time, nothing else
        write_text(_note(path), json.dumps(_state(path) | {"sha256": digest}))


def _state(path: Path) -> dict[str, object]:
    status = path.stat()
    return {"path": str(path.resolve()), "size": status.st_size, "mtime_ns": status.st_mtime_ns}


def _note(path: Path) -> Path:
    key = hashlib.sha256(str(path.resolve()).encode()).hexdigest()
    return cache_dir() / "digests" / f"{key[:24]}.json"


def write_text(path: Path, text: str) -> None:
    """Writes a small file in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, path)


@contextlib.contextmanager
def built_folder(final: Path) -> Iterator[Path]:
    """A new folder that takes the place of `final` when the block ends well, and else vanishes.

    The caller holds a lock: what an earlier, killed builder left behind is removed.
    """
    draft = final.with_name(final.name + ".tmp")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        yield draft
        shutil.rmtree(final, ignore_errors=True)
        os.replace(draft, final)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
