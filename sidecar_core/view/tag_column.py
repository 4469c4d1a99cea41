"""The two tag columns: what each tagger wrote, where each tag is found, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence

from sidecar_core.grounding import ground
from sidecar_core.report import TaggerReport
from sidecar_core.settings import RunSettings
from sidecar_core.view.render import attribute, text

PLACE_WORDS = {
    "summary": ("✓", "in the summary"),
    "document": ("!", "{} only in the document"),
    "neither": ("?", "in neither"),
    "unknown": ("?", "not in the summary"),
}
"""Where a tag is found → (mark, words). {} stands for the words that leak; unknown: the recording
does not contain the document."""

UNSEEN = {
    "sidecar": "a coincidence, or from the summary's columns in the cache",
    "standalone": "a coincidence",
}
"""Tagger → how a word that is only in the document came into a tag although the tagger did not see
the document. The columns of the summary in the cache were computed from the document; the
standalone tagger reads the summary's text alone."""

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


def unseen(tagger: str, settings: RunSettings) -> str:
    """How a word of the document alone may stand in this tagger's tags; "" if it saw the
    document."""
    return UNSEEN[tagger] if tagger == "standalone" or settings.document_masking else ""


def chip(
    tag: str,
    summary: str,
    document: str | None,
    sign: str = "#",
    unseen: str = "",
    find: bool = False,
) -> str:
    """One tag. `unseen` says how a word of the document came into it if the tagger did not see the
    document; with `find`, a tag that leaks is a button that leads to its words in the article."""
    found = ground(tag, summary, document or "")
    place: str = "unknown" if document is None and found.place == "neither" else found.place
    mark, words = place_words(place, found.words)
    if place == "document" and unseen:
        place, mark, words = "document unseen", "?", f"{words}: {unseen}"
    passage = f": “{found.passage}”" if found.passage else ""
    name = f'<span class="tag">{sign}{text(tag)}</span>'
    if find and found.place == "document":
        name = (
            f'<button type="button" class="tag" data-do="find" '
            f'data-passage="{attribute(found.passage)}" title="Show the passage in the article">'
            f"{sign}{text(tag)}</button>"
        )
    return (
        f'<li class="chip {place}" title="{attribute(words + passage)}">'
        f'<span class="mark" aria-hidden="true">{mark}</span>'
        f'{name}<span class="where">{text(words)}</span></li>'
    )


def column(
    report: TaggerReport,
    summary: str,
    document: str | None,
    task: str = "hashtags",
    *,
    running: bool = False,
    unseen: str = "",
    find: bool = False,
) -> dict[str, str]:
    """Values of one column for the page's template. `raw` grows while the tagger writes; then
    `list` holds the tags with their grounding, or the text, and the other values hold the costs.
    `what` names the result. `document` is None if a recording does not contain it. `unseen` and
    `find` are as in `chip`."""
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
        sign = SIGNS[task]
        chips = "".join(chip(tag, summary, document, sign, unseen, find) for tag in done.tags)
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
