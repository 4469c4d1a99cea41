"""Many samples of one tagger at once, over columns that all of them share.

What the samples have in common (prompt, summary, cue) is in the cache once. In each pass the tokens
of all samples that still write stand side by side, at the same position; a mask lets each see the
shared columns and its own. So N samples cost N times their own few columns, not N caches, and the
weights are read once for all. A sample that is done drops out of the passes.

Each sample draws from a generator of its own: what it writes does not depend on how many there are
(up to the rounding of attention over the columns of the others).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from sidecar_core.decoding.passes import forward
from sidecar_core.decoding.sampling import Sampler
from sidecar_core.decoding.tagging import Opening
from sidecar_core.models.pair import LoadedModel
from sidecar_core.tasks import SidecarTask
from sidecar_core.text import TokenStream

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True)
class Sample:
    """What one sample wrote behind the cue: token ids without an end of text, text, results."""

    row: int
    ids: tuple[int, ...]
    text: str
    tags: tuple[str, ...]


class _Row:
    """One sample under way."""

    def __init__(
        self, index: int, generator: torch.Generator, tokenizer: PreTrainedTokenizerBase
    ) -> None:
        self.index, self.generator = index, generator
        self.stream = TokenStream(tokenizer)
        self.ids: list[int] = []
        self.text = ""


@dataclass(frozen=True, slots=True)
class BatchWriter:
    """Writes samples of one task. `vocabulary` is the common width, `stop_ids` end a text."""

    model: LoadedModel
    tokenizer: PreTrainedTokenizerBase
    task: SidecarTask
    cue: tuple[int, ...]
    sampler: Sampler
    vocabulary: int
    stop_ids: frozenset[int]

    def write(self, opening: Opening, samples: int, seed: int) -> Iterator[list[Sample]]:
        """`samples` samples behind `opening`, whose cache is used up.

        Yields after each forward pass the samples that ended in it, often none: the caller may
        stop there. With equal seeds, fewer samples are the first of more.
        """
        cache, device = opening.cache, self.model.device
        logits = forward(self.model, cache, self.cue, opening.position, segment="cue")
        position = opening.position + len(self.cue)
        rows = [
            _Row(i, torch.Generator(device).manual_seed(row_seed), self.tokenizer)
            for i, row_seed in enumerate(_seeds(seed, samples))
        ]
        logits = logits.expand(samples, -1)  # all begin alike
        owners = torch.full((cache.length,), -1, device=device)  # -1: a column of everybody's
        while rows:
            ended = []
            for row, scores in zip(rows, logits, strict=True):
                if self._take(row, self.sampler.choose(scores[: self.vocabulary], row.generator)):
                    ended.append(row)
            rows = [row for row in rows if row not in ended]
            yield [self._sample(row) for row in ended]
            if not rows:
                return
            own = torch.tensor([row.index for row in rows], device=device)
            owners = torch.cat([owners, own])
            mask = (owners[None] == -1) | (owners[None] == own[:, None])
            logits = forward(
                self.model,
                cache,
                [row.ids[-1] for row in rows],
                [position] * len(rows),
                segment="tags",
                rows=len(rows),
                mask=mask[None, None],
            )
            position += 1

    def _take(self, row: _Row, token: int) -> bool:
        """Append `token`; whether the row is done."""
        if token in self.stop_ids:
            return True
        row.ids.append(token)
        row.text += row.stream.push(token)
        return self.task.is_done(row.text) or len(row.ids) >= self.task.max_tokens

    def _sample(self, row: _Row) -> Sample:
        text = row.text + row.stream.flush()
        return Sample(row.index, tuple(row.ids), text, self.task.parse(text))


def _seeds(seed: int, count: int) -> list[int]:
    source = torch.Generator().manual_seed(seed)
    return [int(torch.randint(2**31, (), generator=source)) for _ in range(count)]
