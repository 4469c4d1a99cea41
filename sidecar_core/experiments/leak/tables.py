"""Results of `leak` as text for a terminal."""

from __future__ import annotations

from typing import Any

from sidecar_core.experiments.tables import bounds, columns, models, percent, signed, skipped

MOST_TAGS = 15


def leak_text(result: dict[str, Any]) -> str:
    """Conditions, differences, and for one article the tags that came most often."""
    watch = result["watch"]
    rows = [["condition", "samples", "leaks", "rate", "95 %", "only in document", "in neither"]]
    for name, found in result["conditions"].items():
        rows.append(
            [
                name,
                str(found["samples"]),
                str(found["leaks"]),
                percent(found["rate"], ""),
                bounds(found["ci95"], ".3f"),
                f"{found['tags_only_in_document']} of {found['tags']} tags",
                str(found["tags_in_neither"]),
            ]
        )
        if watch:
            rows[-1].append(str(found["watched"]))
    if watch:
        rows[0].append(f"“{watch}”")
    lines = [models(result), "", columns(rows), ""]
    for pair, d in result["differences"].items():
        p = f", p = {d['p_value']:.3g}" if "p_value" in d else ""
        lines.append(f"{pair}: {signed(d['difference'])} {bounds(d['ci95'], '+.3f')}{p}")
    if "summary" in result:
        lines = [str(result["summary"]), "", *lines, "", *_tags(result)]
    else:
        lines += ["", f"{result['documents']} articles", *skipped(result)]
    return "\n".join(lines)


def _tags(result: dict[str, Any]) -> list[str]:
    names = list(result["conditions"])
    rows = [["tag", "stands in", *names]]
    for entry in result["tags"][:MOST_TAGS]:
        place = {"document": "DOCUMENT ONLY"}.get(entry["place"], entry["place"])
        rows.append([entry["tag"], place, *(str(entry["samples"][name]) for name in names)])
    more = len(result["tags"]) - MOST_TAGS
    return [columns(rows), *([f"and {more} more"] if more > 0 else [])]


def cue_text(result: dict[str, Any]) -> str:
    """What came behind the summary, and how often a cue is needed."""
    rows = [["condition", "articles", "ends", "tags", "goes on", "needs a cue", "95 %"]]
    for name, found in result["conditions"].items():
        counts = (str(found[key]) for key in ("articles", "ends", "tags", "goes_on"))
        share = percent(found["needs_cue"], "")
        rows.append([name, *counts, share, bounds(found["ci95"], ".3f")])
    return "\n".join([models(result), "", columns(rows), *skipped(result)])
