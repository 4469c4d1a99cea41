"""One guard, as a row of the tables."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Guard:
    """`piece` in `file` (of the package) guards `against` something; with `instead` in its place,
    `test` (a node of pytest's, under `tests`) must fail."""

    against: str
    file: str
    piece: str
    instead: str
    test: str

    @property
    def path(self) -> str:
        """Its file, from the root of the project."""
        return f"sidecar_core/{self.file}"

    def out_of(self, source: str) -> str:
        """`source`, which holds the piece once, without the guard."""
        return source.replace(self.piece, self.instead)
