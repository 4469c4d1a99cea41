"""The attention map: who attends to what. Rows attend to columns; every toggle redraws it.

The cells come from `visibility.sight`, the table that the engine's caches are tested against.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sidecar_core.settings import RunSettings
from sidecar_core.view.render import text
from sidecar_core.visibility import sight

NAMES = {
    "head": ("H", "opening", "chat template and “Document:”"),
    "document": ("D", "document", "the article"),
    "instruction": ("I", "instruction", "“summarize in 3 bullets …”"),
    "suffix": ("X", "suffix", "the sidecar's instruction; only the draft reads it"),
    "tail": ("A", "chat tail", "chat template between question and answer"),
    "summary": ("S", "summary", "the text that is generated"),
    "tags": ("T", "tags", "the forced opening of the tag list, and the tags"),
}
"""Segment → (letter, name, explanation). Here the cue is part of the tags."""

COMPOUND = ("head", "document", "instruction", "suffix", "tail", "summary", "tags")
DEFERRED = ("head", "document", "instruction", "tail", "summary", "suffix", "tags")
"""If the draft's prompt has no suffix, the sidecar reads the suffix after the summary."""


@dataclass(frozen=True, slots=True)
class MapRow:
    """One reader, with a cell for each column: "all", "causal", "masked", or "none" (the column
    comes later, or is not in the prompt)."""

    title: str
    note: str
    cells: tuple[str, ...]


def rows(order: Sequence[str], settings: RunSettings) -> tuple[MapRow, ...]:
    """The rows of the map, top to bottom."""

    def cells(reader: str, target: bool = False) -> tuple[str, ...]:
        found = []
        for column in order:
            masked, unmasked = (
                sight(reader, column, order, suffix_masking=s, document_masking=d)
                for s, d in ((settings.suffix_masking, settings.document_masking), (False, False))
            )
            if target and column == "suffix":
                found.append("none")
            else:
                found.append("masked" if masked != unmasked else str(masked))
        return tuple(found)

    readers = [
        MapRow("Target", "judges and writes the summary", cells("summary", target=True)),
        MapRow("Draft, summary", "drafts the summary", cells("summary")),
    ]
    if "suffix" in order:
        readers.append(MapRow("Draft, tags", "writes the tags", cells("tags")))
    return tuple(readers)


def attention_map(lengths: Mapping[str, int], settings: RunSettings) -> str:
    """The map. `lengths` are tokens by segment name; empty before the tokenizer is loaded."""
    if settings.draft_prompt == "unrelated":
        return (
            '<p class="quiet">The draft reads only the unrelated text, not the article. It guesses '
            "blindly, so the target rejects almost every draft and writes the summary itself. The "
            "draft's cache holds nothing to make tags from.</p>"
        )
    order = DEFERRED if settings.draft_prompt == "identical" else COMPOUND
    weights = [_weight(lengths.get(name)) for name in order]
    share = [100 * w / sum(weights) for w in weights]
    columns = "".join(f'<col style="width:{s:.1f}%">' for s in share)
    head = "".join(_heading(name, lengths.get(name)) for name in order)
    body = "".join(
        f'<tr><th scope="row">{row.title}<small>{row.note}</small></th>'
        + "".join(_cell(kind, name) for kind, name in zip(row.cells, order, strict=True))
        + "</tr>"
        for row in rows(order, settings)
    )
    return (
        '<table class="map"><colgroup><col class="who">'
        f"{columns}</colgroup><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table>"
        f'<p class="reading">{text(reading(lengths, settings))}</p>'
    )


def reading(lengths: Mapping[str, int], settings: RunSettings) -> str:
    """The map in words."""
    if settings.draft_prompt == "identical":
        first = "Draft and target read the same prompt; the suffix follows the summary."
    elif settings.suffix_masking:
        first = "While it drafts the summary, the draft does not see the suffix."
    else:
        first = "While it drafts the summary, the draft sees the suffix, and the target does not."
    if not settings.document_masking:
        return f"{first} The sidecar attends to the document and the summary."
    second = " The sidecar does not attend to the document"
    if kept := lengths.get("document"):
        second += f": {kept:,} fewer tokens in its cache"
    return f"{first}{second}."


def _weight(tokens: int | None) -> float:
    """Width of a column. It grows slowly with the segment, so that short ones stay readable."""
    return 3.7 + (math.sqrt(min(tokens, 1500)) / 2.5 if tokens else 2.5)


def _heading(name: str, tokens: int | None) -> str:
    letter, word, explanation = NAMES[name]
    count = f"<small>{tokens:,}</small>" if tokens else "<small>&nbsp;</small>"
    return (
        f'<th scope="col" title="{word}: {explanation}"><b>{letter}</b>'
        f'<span class="word">{word}</span>{count}</th>'
    )


def _cell(kind: str, name: str) -> str:
    word = NAMES[name][1]
    said = {
        "all": f"attends to the {word}",
        "causal": f"attends to the {word} so far",
        "masked": f"the {word} is masked",
        "none": f"does not have the {word}",
    }[kind]
    shown = "masked" if kind == "masked" else ""
    return f'<td class="{kind}" title="{said}"><span>{shown}</span><i class="said">{said}</i></td>'
