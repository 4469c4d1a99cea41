"""Who sees whom, as a picture: segments across, who reads down; redrawn with every toggle.

The cells come from `visibility.sight`, the same table that the engine's caches are tested against.
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
    "suffix": ("X", "suffix", "the sidecar's instruction, read by the draft alone"),
    "tail": ("A", "chat tail", "chat template between question and answer"),
    "summary": ("S", "summary", "what is written"),
    "tags": ("T", "tags", "the forced opening of the tag list, and the tags"),
}
"""Segment → (letter, name, explanation). The cue belongs to the tags here."""

COMPOUND = ("head", "document", "instruction", "suffix", "tail", "summary", "tags")
DEFERRED = ("head", "document", "instruction", "tail", "summary", "suffix", "tags")
"""Where the draft's own prompt has no suffix, the tagger reads it behind the summary."""


@dataclass(frozen=True, slots=True)
class Row:
    """One reader: for each column "all", "causal", "none" (later or not there) or "hidden"."""

    title: str
    note: str
    cells: tuple[str, ...]


def rows(order: Sequence[str], settings: RunSettings) -> tuple[Row, ...]:
    """The readers of the picture, top to bottom."""

    def cells(reader: str, target: bool = False) -> tuple[str, ...]:
        found = []
        for column in order:
            masked, plain = (
                sight(reader, column, order, suffix_masking=s, document_masking=d)
                for s, d in ((settings.suffix_masking, settings.document_masking), (False, False))
            )
            if target and column == "suffix":
                found.append("none")
            else:
                found.append("hidden" if masked != plain else str(masked))
        return tuple(found)

    readers = [
        Row("Target", "writes and judges the summary", cells("summary", target=True)),
        Row("Draft, summary", "drafts the summary", cells("summary")),
    ]
    if "suffix" in order:
        readers.append(Row("Draft, tags", "writes on the side", cells("tags")))
    return tuple(readers)


def attention_map(lengths: Mapping[str, int], settings: RunSettings) -> str:
    """The picture. `lengths` are tokens by segment name; empty before the tokenizer is there."""
    if settings.draft_prompt == "unrelated":
        return (
            '<p class="quiet">The draft reads only the text you typed, never the article: it '
            "guesses blindly, the target rejects almost everything, and the summary stays the "
            "target's own. There is nothing in the draft's memory to make tags from.</p>"
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
    """What the picture says, in words."""
    if settings.draft_prompt == "identical":
        first = "Draft and target read the same prompt; the suffix comes after the summary."
    elif settings.suffix_masking:
        first = "While it drafts the summary, the draft does not see the suffix."
    else:
        first = "While it drafts the summary, the draft sees the suffix, and the target does not."
    if not settings.document_masking:
        return f"{first} The tagger sees the document as well as the summary."
    second = " The tagger does not see the document"
    if kept := lengths.get("document"):
        second += f": {kept:,} tokens less to attend to"
    return f"{first}{second}."


def _weight(tokens: int | None) -> float:
    """Width of a column: grows with the segment, but slowly, so that short ones stay readable."""
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
        "all": f"sees the {word}",
        "causal": f"sees the {word} so far",
        "hidden": f"the {word} is hidden",
        "none": f"does not have the {word}",
    }[kind]
    shown = "hidden" if kind == "hidden" else ""
    return f'<td class="{kind}" title="{said}"><span>{shown}</span><i class="said">{said}</i></td>'
