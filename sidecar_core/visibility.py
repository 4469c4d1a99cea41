"""Who sees whom: the table of the method as data, and as a plain mask over one full pass.

The engine never builds the mask: it composes caches, as `_draft_side` in `decoding/run.py` and
`decoding/tagging.py` choose. The mask is the slow, obvious way that composition is tested against,
and the table is what the page draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import torch

Sight = Literal["all", "causal", "none"]

SUMMARY_ROWS = ("tail", "summary")
"""The chat tail stands behind the suffix: through a tail that saw it, the summary would see it."""

TAG_ROWS = ("cue", "tags")


def sight(
    row: str, column: str, order: Sequence[str], *, suffix_masking: bool, document_masking: bool
) -> Sight:
    """What tokens of segment `row` see of segment `column`, both taken from `order`."""
    if order.index(column) > order.index(row):
        return "none"
    if row == column:
        return "causal"
    if suffix_masking and row in SUMMARY_ROWS and column == "suffix":
        return "none"
    if document_masking and row in TAG_ROWS and column == "document":
        return "none"
    return "all"


def full_mask(
    segments: Sequence[tuple[str, int]], *, suffix_masking: bool, document_masking: bool
) -> torch.Tensor:
    """Bool mask [1, 1, N, N], True = attend, over `segments`: (name, tokens) in column order."""
    import torch  # here, so that the page can draw the table before PyTorch is there

    order = [name for name, _ in segments]
    rows = []
    for row, height in segments:
        blocks = []
        for column, width in segments:
            seen = sight(
                row,
                column,
                order,
                suffix_masking=suffix_masking,
                document_masking=document_masking,
            )
            block = torch.full((height, width), seen != "none")
            blocks.append(block.tril() if seen == "causal" else block)
        rows.append(torch.cat(blocks, dim=1))
    return torch.cat(rows)[None, None]


def positions(segments: Sequence[tuple[str, int]], *, rebased: bool) -> list[int]:
    """Position of every token of `segments`, in column order.

    Natural: counted through. Rebased: what stands behind the suffix starts where the suffix
    starts, as if it were not there. A suffix at the end (deferred) shifts nothing.
    """
    return [
        position
        for _, start, length in placed(segments, rebased=rebased)
        for position in range(start, start + length)
    ]


def placed(segments: Sequence[tuple[str, int]], *, rebased: bool) -> Iterator[tuple[str, int, int]]:
    """(name, first position, tokens) of every segment."""
    start = 0
    names = [name for name, _ in segments]
    in_front = "suffix" in names and "tail" in names[names.index("suffix") :]
    for name, length in segments:
        yield name, start, length
        if not (rebased and in_front and name == "suffix"):
            start += length
