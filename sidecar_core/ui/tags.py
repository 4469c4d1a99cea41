"""The two tag columns: what each tagger wrote, where each tag stands, and what it cost."""

from __future__ import annotations

from sidecar_core.grounding import Grounding, ground
from sidecar_core.report import TaggerReport
from sidecar_core.ui.render import attribute, text

PLACE_WORDS = {
    "summary": ("✓", "in the summary"),
    "document": ("!", "only in the document"),
    "neither": ("?", "in neither"),
}
"""Where a tag's words stand → (mark, words)."""


def bytes_text(count: int) -> str:
    """Bytes in the unit that reads best (decimal)."""
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.2f} GB"


def chip(tag: str, found: Grounding) -> str:
    mark, words = PLACE_WORDS[found.place]
    passage = f": “{found.passage}”" if found.passage else ""
    return (
        f'<li class="chip {found.place}" title="{attribute(words + passage)}">'
        f'<span class="mark" aria-hidden="true">{mark}</span><span class="tag">#{text(tag)}</span>'
        f'<span class="where">{words}</span></li>'
    )


def column(report: TaggerReport, summary: str, document: str, running: bool) -> str:
    """One column: the raw text while it is written, then chips with their grounding, then costs."""
    if report.skipped is not None:
        return f'<p class="quiet">{text(report.skipped)}</p>' + costs(report)
    done = report.finished
    if done is None:
        if report.text:
            return f'<p class="raw">{text(report.text)}</p>' + costs(report)
        words = "Waits for the summary." if running else "Tags appear here after the summary."
        return f'<p class="quiet">{words}</p>' + costs(report)
    if not done.tags:
        raw = text(done.forced + done.text)
        return f'<p class="quiet">No usable tag came out. It wrote:</p><p class="raw">{raw}</p>'
    chips = "".join(chip(tag, ground(tag, summary, document)) for tag in done.tags)
    return f'<ul class="chips">{chips}</ul>' + costs(report)


def costs(report: TaggerReport) -> str:
    """Tokens attended, their cache, tokens computed for it, its time; "–" until it is done."""
    done = report.finished
    figures = (
        (
            "attends to",
            f"{done.kv_tokens:,} tokens" if done else "–",
            "Columns of the draft's KV cache that the last tag token attended to.",
        ),
        ("cache", bytes_text(done.kv_bytes) if done else "–", "Size of those keys and values."),
        (
            "prefilled",
            f"{done.prefill_tokens:,} tokens" if done else "–",
            "Tokens that were computed for the tagger before its first tag.",
        ),
        ("time", f"{done.seconds:.2f} s" if done else "–", "The tagger's own time."),
    )
    cells = "".join(
        f'<div title="{attribute(tip)}"><dt>{name}</dt><dd>{value}</dd></div>'
        for name, value, tip in figures
    )
    return f'<dl class="costs">{cells}</dl>'
