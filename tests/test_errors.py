"""The words that a library's error becomes."""

from __future__ import annotations

from sidecar_core.errors import first_line


def test_of_an_errors_many_lines_the_first_is_told_and_not_too_much_of_it() -> None:
    assert first_line(ValueError("\n no such file\nTraceback: …")) == "no such file"
    assert first_line(OSError("x" * 999)) == "x" * 160


def test_an_error_without_words_is_told_by_its_class() -> None:
    assert first_line(TimeoutError()) == "TimeoutError"
