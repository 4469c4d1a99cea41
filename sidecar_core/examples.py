"""The example articles that come with the program, written for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sidecar_core.installed import ASSETS


@dataclass(frozen=True, slots=True)
class Example:
    """`key` is its file's name, without the ending."""

    title: str
    text: str
    key: str = ""


def load_examples(folder: Path = ASSETS / "examples") -> tuple[Example, ...]:
    """The folder's .txt files by name; the first line of each is its title."""
    found = []
    for path in sorted(folder.glob("*.txt")):
        title, _, body = path.read_text(encoding="utf-8").partition("\n")
        found.append(Example(title.strip(), body.strip(), path.stem))
    return tuple(found)
