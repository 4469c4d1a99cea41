"""How long a tag list takes, from runs that were measured: the sidecar against the standalone.

A tagger's seconds are its own (`TagsFinished.seconds`): the other tagger and waiting do not count.
The share is that of the summary's time, from its first pass to its last token; reading the article
is left out, since it is needed with tags and without.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from sidecar_core.errors import SidecarError
from sidecar_core.report import RunReport

TAGGERS = ("sidecar", "standalone")


def latency(reports: Sequence[RunReport]) -> dict[str, Any]:
    """{runs, summary_seconds, sidecar, standalone, saved_seconds}: medians over the runs.

    `percent` is what tagging adds to the summary's time, `tokens` how many were read before the
    first tag. Raises SidecarError where a run has no summary or not both taggers.
    """
    rows = [_row(report) for report in reports]
    found: dict[str, Any] = {
        "runs": len(rows),
        "summary_seconds": statistics.median(row["summary"] for row in rows),
    }
    for tagger in TAGGERS:
        found[tagger] = {
            "seconds": statistics.median(row[tagger] for row in rows),
            "percent": statistics.median(100 * row[tagger] / row["summary"] for row in rows),
            "tokens": statistics.median(row[f"{tagger} tokens"] for row in rows),
        }
    found["saved_seconds"] = statistics.median(row["standalone"] - row["sidecar"] for row in rows)
    return found


def _row(report: RunReport) -> dict[str, float]:
    start, end = report.summary_started, report.last_token_seconds
    if start is None or end is None or end <= start:
        raise SidecarError("A run has no summary whose time is known; use finished ones.")
    row = {"summary": end - start}
    for tagger in TAGGERS:
        finished = report.taggers[tagger].finished
        if finished is None:
            raise SidecarError("A run has no tags of both taggers; use finished ones.")
        row |= {tagger: finished.seconds, f"{tagger} tokens": finished.prefill_tokens}
    return row
