"""The two tag columns: what each tagger wrote, where each tag is found, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence

from sidecar_core.grounding import ground
from sidecar_core.report import TaggerReport
from sidecar_core.view.render import attribute, text

PLACE_WORDS = {
    "summary": ("✓", "in the summary"),
    "document": ("!", "{} only in the document"),
    "neither": ("?", "in neither"),
    "unknown": ("?", "not in the summary"),
}
"""Where a tag is found → (mark, words). {} stands for the words that leak; unknown: the recording
does not contain the document."""

SIGNS = {"hashtags": "#", "keywords": ""}
"""Tasks whose results are tags, with the sign before each tag. Other results are plain text; they
are not grounded."""

NOUNS = {
    "hashtags": "hashtags",
    "headline": "headline",
    "keywords": "keywords",
    "category": "category",
    "french": "French translation",
    "free": "answer",
}
"""Names for the results of tasks."""


def bytes_text(count: int) -> str:
    """Bytes in a readable decimal unit."""
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.2f} GB"


def place_words(place: str, words: Sequence[str]) -> tuple[str, str]:
    """(mark, words) for where a tag is found; `words` are its words that leak."""
    mark, said = PLACE_WORDS[place]
    return mark, said.format(", ".join(f"“{word}”" for word in words))


def chip(tag: str, summary: str, document: str | None, sign: str = "#") -> str:
    found = ground(tag, summary, document or "")
    place = "unknown" if document is None and found.place == "neither" else found.place
    mark, words = place_words(place, found.words)
    passage = f": “{found.passage}”" if found.passage else ""
    return (
        f'<li class="chip {place}" title="{attribute(words + passage)}">'
        f'<span class="mark" aria-hidden="true">{mark}</span>'
        f'<span class="tag">{sign}{text(tag)}</span><span class="where">{text(words)}</span></li>'
    )


def column(
    report: TaggerReport,
    summary: str,
    document: str | None,
    task: str = "hashtags",
    *,
    running: bool = False,
) -> dict[str, str]:
    """Values of one column for the page's template. `raw` grows while the tagger writes; then
    `list` holds the tags with their grounding, or the text, and the other values hold the costs.
    `what` names the result. `document` is None if a recording does not contain it."""
    done = report.finished
    shown = {"raw": "", "list": "", "tokens": "–", "bytes": "–", "prefilled": "–", "time": "–"}
    shown["what"] = what = text(NOUNS.get(task, task))
    if report.skipped is not None:
        shown["list"] = f'<p class="quiet">{text(report.skipped)}</p>'
    elif done is None and report.text:
        shown["raw"] = text(report.text)
    elif done is None:
        words = "Waiting for the summary." if running else "Appears here after the summary."
        shown["list"] = f'<p class="quiet">{words}</p>'
    elif done.tags and task not in SIGNS:
        shown["list"] = f'<p class="answer" dir="auto">{text(" ".join(done.tags))}</p>'
    elif done.tags:
        chips = "".join(chip(tag, summary, document, SIGNS[task]) for tag in done.tags)
        shown["list"] = f'<ul class="chips">{chips}</ul>'
    else:
        shown["list"] = f'<p class="quiet">No usable {what} found in this output:</p>'
        shown["raw"] = text(done.forced + done.text)
    if done is not None:
        shown |= {
            "tokens": f"{done.kv_tokens:,} tokens",
            "bytes": bytes_text(done.kv_bytes),
            "prefilled": f"{done.prefill_tokens:,} tokens",
            "time": f"{done.seconds:.2f} s",
        }
    return shown
