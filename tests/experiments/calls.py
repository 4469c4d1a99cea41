"""Commands as a user calls them, and what they print."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

from sidecar_core.__main__ import main

TEXTS = ["The council voted on Tuesday to replace the boilers.", "The old quarter gets a wall."]


def result_of(capsys, *arguments: str) -> dict:
    """The one JSON object on standard output."""
    assert main([*arguments, "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    return json.loads(out)


def error_of(capsys, *arguments: str) -> str:
    """The one line of a refused command."""
    assert main([*arguments, "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.strip().splitlines()[-1]


def table_of(capsys, *arguments: str) -> str:
    """What the command prints for people."""
    assert main(arguments) == 0
    return capsys.readouterr().out


def figure_words(figure: Path) -> list[str]:
    """All texts of an SVG file, in order."""
    return [node.text or "" for node in ElementTree.parse(figure).iter() if "text" in node.tag]
