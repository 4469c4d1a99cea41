"""Weights turned, once, into safetensors in the form in which they are used.

transformers unpacks a GGUF file's blocks in Python, which takes up to a minute and several times
the file's memory; so a process of its own does it (`convert_worker`), and the page goes on living.
The result is kept in the cache with config, generation config and tokenizer, and later starts map
it into memory. A kept folder holds a marker with its source and the size and SHA-256 of each file;
whatever does not agree with it is made again.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from sidecar_core.errors import SidecarError
from sidecar_core.events import LoadProgress
from sidecar_core.installed import environment
from sidecar_core.models.cache import Progress, cache_dir, known_sha256
from sidecar_core.models.sources import Weights
from sidecar_core.settings import Precision

FORMAT = 1
"""Goes up whenever what is written changes; older entries are then made again."""

MARKER = "sidecar.json"


def converted_folder(weights: Weights, precision: Precision) -> Path:
    """Where the converted form is kept."""
    stem = re.sub(r"[^A-Za-z0-9.-]+", "-", weights.name.partition(" ")[0]).lower()
    return cache_dir() / "models" / f"{stem}-{weights.digest.partition(':')[2][:12]}-{precision}"


def is_converted(weights: Weights, precision: Precision) -> bool:
    """Whether the converted form is there, whole, and made from these weights."""
    folder = converted_folder(weights, precision)
    try:
        marker = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        if marker["format"] != FORMAT or marker["source"] != weights.digest:
            return False
        files: dict[str, dict[str, Any]] = marker["files"]
        return bool(files) and all(
            (folder / name).stat().st_size == file["size"]
            and known_sha256(folder / name) == file["sha256"]
            for name, file in files.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def convert(weights: Weights, precision: Precision, progress: Progress) -> Path:
    """The folder with the converted form, made if it is not there or not whole.

    Raises SidecarError for weights that are damaged or that transformers cannot read, and when
    memory or disk are too small.
    """
    if not is_converted(weights, precision):
        progress(LoadProgress(f"Converting {weights.name} to {precision} (once)"))
        _run_worker(weights, precision, progress)
    return converted_folder(weights, precision)


def _run_worker(weights: Weights, precision: Precision, progress: Progress) -> None:
    job = {"name": weights.name, "path": str(weights.path), "digest": weights.digest}
    command = [sys.executable, "-m", "sidecar_core.models.convert_worker", precision]
    error = None
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(  # noqa: S603  (a fixed command, no shell)
            [*command, json.dumps(job)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment(),
            encoding="utf-8",
        ) as worker,
    ):
        try:
            for line in worker.stdout or ():
                told = json.loads(line)
                error = told.get("error")
                if error is None:
                    progress(LoadProgress(**told))
        except BaseException:
            worker.kill()
            raise
        code = worker.wait()
        log.seek(0)
        said = log.read().decode("utf-8", "replace").strip().rpartition("\n")[2]
    if error:
        raise SidecarError(error)
    doing = f"Converting {weights.name} to {precision}"
    if code < 0 or code == 137 or said.startswith("MemoryError"):  # 137: a shell's word for killed
        raise SidecarError(
            f"{doing} was cut off (exit code {code}), most likely for lack of memory: it needs "
            "about four bytes for each weight. Close other programs, or use a smaller pair."
        )
    if code:
        raise SidecarError(
            f"{doing} failed ({said[:200] or f'exit code {code}'}); fetch the model again, or use "
            "another one."
        )
