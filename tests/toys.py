"""Stand-ins for the loop's inputs where a test is about the loop's arithmetic alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch


class NoText:
    """A TokenStream of tokens that have no text."""

    def push(self, token: int) -> str:
        return ""

    def preview(self, tokens: Iterable[int]) -> list[str]:
        return ["" for _ in tokens]


class ToySide:
    """A model whose next-token logits, [vocabulary], are the same everywhere."""

    one_row = False  # nobody measures its passes

    def __init__(self, logits: torch.Tensor) -> None:
        self.logits = logits
        self.emitted: list[int] = []
        self.seconds = 0.0

    def run(self, proposed: Sequence[int], rows: int) -> torch.Tensor:
        return self.logits.expand(rows, -1)

    def commit(self, tokens: Sequence[int]) -> None:
        self.emitted.extend(tokens)


class ScriptSide(ToySide):
    """A model that is certain of the next token: `script[i]` at place i of the text."""

    def __init__(self, script: Sequence[int], vocabulary: int = 8) -> None:
        super().__init__(torch.zeros(vocabulary))
        self.script = script

    def run(self, proposed: Sequence[int], rows: int) -> torch.Tensor:
        end = len(self.emitted) + len(proposed)
        logits = torch.zeros(rows, len(self.logits))
        for row in range(rows):
            place = end - rows + 1 + row
            logits[row, self.script[place % len(self.script)]] = 20.0
        return logits
