"""Files that a user names, good ones and those that no disk gives or takes."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from sidecar_core import files
from sidecar_core.errors import SidecarError

FULL = Path("/dev/full")
needs_full_disk = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")


def test_text_is_read_without_its_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("\ufeffdéjà vu".encode())
    assert files.read_text(tmp_path / "a.txt") == "déjà vu"


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"words")))
    assert files.read_text("-") == "words"


def test_a_file_that_is_too_large_is_refused_and_never_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 8)
    path = tmp_path / "a.txt"
    path.write_text("8 bytes.")
    assert files.read_text(path) == "8 bytes."
    path.write_text("nine byte")
    with pytest.raises(SidecarError, match="larger than 8 bytes"):
        files.read_text(path)


def test_what_is_not_there_or_no_text_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SidecarError, match=r"Cannot read .*none: No such file"):
        files.read_text(tmp_path / "none")
    (tmp_path / "picture").write_bytes(b"\x89PNG")
    with pytest.raises(SidecarError, match="picture is not UTF-8 text"):
        files.read_text(tmp_path / "picture")


SAMPLES = [
    "The harbour council agreed.\n",
    "Совет порта решил.",
    "สภาท่าเรือ ตัดสินใจ",
    "港口委员会 决定",
]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32-le"])
@pytest.mark.parametrize("text", SAMPLES)
def test_text_of_another_encoding_is_refused_with_and_without_its_mark(
    text: str, encoding: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode(encoding))
    with pytest.raises(SidecarError, match=r"a\.txt is not UTF-8 text; convert it first"):
        files.read_text(path)


@pytest.mark.parametrize("text", [*SAMPLES, "", "a\tb\r\nc\x0cd", "Stray \x07 bell in a line"])
def test_utf_8_is_read_as_it_is(text: str) -> None:
    assert files.decode(text.encode()) == text


def test_a_log_holds_its_lines_at_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with files.log_file(path) as add:
        add("α")
        assert path.read_text("utf-8") == "α\n"
        add("β")
    assert path.read_text("utf-8") == "α\nβ\n"


@needs_full_disk
def test_a_full_disk_is_one_line_wherever_it_shows() -> None:
    with pytest.raises(SidecarError, match="Cannot write /dev/full: No space left"):
        files.save_text(FULL, "words")
    with (
        pytest.raises(SidecarError, match="Cannot write /dev/full: No space left"),
        files.log_file(FULL) as add,
    ):
        add("a line")


def test_what_fails_beside_a_log_is_not_told_as_the_logs_fault(tmp_path: Path) -> None:
    with pytest.raises(BrokenPipeError), files.log_file(tmp_path / "log"):
        raise BrokenPipeError
