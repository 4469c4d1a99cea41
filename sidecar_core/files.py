"""Files that a user names: read whole, or written, and what the disk refuses told in one line."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from sidecar_core.errors import SidecarError
from sidecar_core.settings import MAX_ARTICLE_CHARS

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")
"""Those that no text holds; tabs and the ends of lines and pages are left out."""

MAX_BYTES = 64 * MAX_ARTICLE_CHARS


@contextlib.contextmanager
def file_errors(doing: str, path: Path | str) -> Iterator[None]:
    """Turns an OSError into a SidecarError: what could not be done ("read", "write"), and why."""
    try:
        yield
    except OSError as error:
        raise SidecarError(f"Cannot {doing} {path}: {error.strerror or error}.") from error


def read_text(path: Path | str) -> str:
    """A UTF-8 text file, or standard input for "-". Raises SidecarError where it cannot."""
    with file_errors("read", path):
        if str(path) == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise SidecarError(f"{path} is larger than {MAX_BYTES:,} bytes; give a smaller file.")
    try:
        return decode(data)
    except UnicodeError as error:
        raise SidecarError(f"{path} is not UTF-8 text; convert it first.") from error


def decode(data: bytes) -> str:
    """UTF-8 text, a byte order mark left out. Raises UnicodeError for bytes that are not UTF-8, and
    for those that can be read as it but are UTF-16 or no text: NUL, or one control character in
    ten."""
    text = data.decode("utf-8-sig")
    controls = len(_CONTROL.findall(text))
    if "\0" in text or controls * 10 > len(text):
        raise UnicodeError("control characters instead of text")
    return text


def save_text(path: Path, text: str) -> None:
    """Write a whole file. Raises SidecarError where it cannot."""
    with file_errors("write", path):
        path.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def log_file(path: Path) -> Iterator[Callable[[str], None]]:
    """A new file, as what adds a line to it. Raises SidecarError at the line that does not fit."""
    with file_errors("write", path):
        file = path.open("w", encoding="utf-8", buffering=1)

    def add(line: str) -> None:
        with file_errors("write", path):
            file.write(line + "\n")

    try:
        yield add
    finally:
        with file_errors("write", path):
            file.close()
