"""Reads a Dockerfile as far as ours goes: one instruction a line, backslashes, JSON lists."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path


class Dockerfile:
    """`steps` are (instruction, words); `env` is what ENV says, with earlier values filled in."""

    def __init__(self, text: str) -> None:
        joined = re.sub(r"\\\n\s*", "", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
        self.steps = [
            (line.split(" ", 1)[0], line.split(" ", 1)[1].strip())
            for line in joined.splitlines()
            if line.strip()
        ]
        self.env: dict[str, str] = {}
        for words in self.all("ENV"):
            for part in shlex.split(words):
                name, value = part.split("=", 1)
                self.env[name] = re.sub(
                    r"\$\{?(\w+)\}?", lambda m: self.env.get(m[1], f"${m[1]}"), value
                )

    def all(self, instruction: str) -> list[str]:
        return [words for name, words in self.steps if name == instruction]

    def one(self, instruction: str) -> str:
        (words,) = self.all(instruction)
        return words

    def command(self) -> list[str]:
        return list(json.loads(self.one("CMD")))

    def health_check(self) -> list[str]:
        return list(json.loads(self.one("HEALTHCHECK").split("CMD", 1)[1]))


def ignored(root: Path, name: str) -> bool:
    """Whether .dockerignore keeps a file (its path from the root) out."""
    for line in (root / ".dockerignore").read_text().split():
        pattern = re.escape(line).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
        if re.fullmatch(f"{pattern}(/.*)?", name):
            return True
    return False
