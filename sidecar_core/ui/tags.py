"""The two tag columns: what each tagger wrote, where each tag stands, and what it cost."""

from __future__ import annotations

from sidecar_core.grounding import ground
from sidecar_core.report import TaggerReport
from sidecar_core.ui.render import attribute, text

PLACE_WORDS = {
    "summary": ("✓", "in the summary"),
    "document": ("!", "only in the document"),
    "neither": ("?", "in neither"),
    "unknown": ("?", "not in the summary"),
}
"""Where a tag's words stand → (mark, words); unknown: it is not known what the document said."""


def bytes_text(count: int) -> str:
    """Bytes in the unit that reads best (decimal)."""
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.2f} GB"


def chip(tag: str, summary: str, document: str | None) -> str:
    found = ground(tag, summary, document or "")
    place = "unknown" if document is None and found.place == "neither" else found.place
    mark, words = PLACE_WORDS[place]
    passage = f": “{found.passage}”" if found.passage else ""
    return (
        f'<li class="chip {place}" title="{attribute(words + passage)}">'
        f'<span class="mark" aria-hidden="true">{mark}</span><span class="tag">#{text(tag)}</span>'
        f'<span class="where">{words}</span></li>'
    )


def column(
    report: TaggerReport, summary: str, document: str | None, running: bool = False
) -> dict[str, str]:
    """One column for the page's template: `raw` grows while the tagger writes; then `list` holds
    the tags with their grounding, and tokens, bytes, prefill and time what they cost. `document`
    is None where a recording does not hold it."""
    done = report.finished
    shown = {"raw": "", "list": "", "tokens": "–", "bytes": "–", "prefilled": "–", "time": "–"}
    if report.skipped is not None:
        shown["list"] = f'<p class="quiet">{text(report.skipped)}</p>'
    elif done is None and report.text:
        shown["raw"] = text(report.text)
    elif done is None:
        words = "Waits for the summary." if running else "Hashtags appear here after the summary."
        shown["list"] = f'<p class="quiet">{words}</p>'
    elif done.tags:
        chips = "".join(chip(tag, summary, document) for tag in done.tags)
        shown["list"] = f'<ul class="chips">{chips}</ul>'
    else:
        shown["list"] = '<p class="quiet">No usable hashtag came out. It wrote:</p>'
        shown["raw"] = text(done.forced + done.text)
    if done is not None:
        shown |= {
            "tokens": f"{done.kv_tokens:,} tokens",
            "bytes": bytes_text(done.kv_bytes),
            "prefilled": f"{done.prefill_tokens:,} tokens",
            "time": f"{done.seconds:.2f} s",
        }
    return shown
