"""One sentence about the result of a scenario.

It states measured numbers only: this run's, and those of earlier runs on the same article that
differ in nothing but the scenario.
"""

from __future__ import annotations

from collections.abc import Sequence

from sidecar_core.grounding import ground
from sidecar_core.report import RunReport
from sidecar_core.scenarios import CHANGED, Scenario
from sidecar_core.settings import RunSettings
from sidecar_core.view.runs_table import RunRecord
from sidecar_core.view.tag_column import SIGNS


def comparable(a: RunSettings, b: RunSettings) -> bool:
    """Whether two runs differ in nothing but what a scenario changes."""
    mine, other = a.as_dict(), b.as_dict()
    return all(mine[name] == other[name] for name in mine if name not in (*CHANGED, "draft_text"))


def outcome(
    scenario: Scenario,
    settings: RunSettings,
    report: RunReport,
    earlier: Sequence[RunRecord],
    document: str,
) -> str:
    """One sentence with this run's numbers and those of the runs to compare with."""
    if not _whole(report) or report.alpha is None:
        return "The run ended before there was anything to compare."
    alpha = report.alpha
    identical = _alpha_of(earlier, settings, "identical", None)
    visible = _alpha_of(earlier, settings, "compound", False)
    if scenario.key == "identical":
        return f"α is {alpha:.3f} with identical prompts: the baseline on this article."
    if scenario.key == "suffix-visible":
        if identical is None:
            return f"α is {alpha:.3f} with the suffix visible; run scenario 1 to compare."
        return f"α {_moved(identical, alpha)} with the suffix visible." + _same_text(
            earlier, settings, report
        )
    if scenario.key == "suffix-masked":
        parts = [f"α is {alpha:.3f} with the suffix masked"]
        if visible is not None:
            parts.append(f"{visible:.3f} with it visible")
        if identical is not None:
            parts.append(f"{identical:.3f} with identical prompts")
        if len(parts) == 1:
            return parts[0] + "; run scenarios 1 and 2 to compare."
        return ", ".join(parts) + "." + _same_text(earlier, settings, report)
    return _tags_outcome(report, earlier, settings, document)


def _alpha_of(
    earlier: Sequence[RunRecord], settings: RunSettings, prompt: str, masking: bool | None
) -> float | None:
    """α of the latest comparable run with that draft prompt and suffix masking (None: either)."""
    for run in reversed(earlier):
        if (
            run.settings.draft_prompt == prompt
            and masking in (None, run.settings.suffix_masking)
            and comparable(run.settings, settings)
            and _whole(run.report)
        ):
            return run.report.alpha
    return None


def _moved(before: float, after: float) -> str:
    word = "fell" if round(after, 3) < round(before, 3) else "rose"
    if round(after, 3) == round(before, 3):
        return f"stayed at {after:.3f}"
    return f"{word} from {before:.3f} to {after:.3f}"


def _whole(report: RunReport) -> bool:
    return report.summary is not None and report.summary.reason != "cancelled"


def _same_text(earlier: Sequence[RunRecord], settings: RunSettings, report: RunReport) -> str:
    """Says so if every comparable whole run wrote exactly the same tokens."""
    others = [
        run.report.ids
        for run in earlier
        if _whole(run.report) and comparable(run.settings, settings)
    ]
    if others and all(ids == report.ids for ids in others):
        return " The summary is the same, token for token."
    return ""


def _tags_outcome(
    report: RunReport, earlier: Sequence[RunRecord], settings: RunSettings, document: str
) -> str:
    done = report.taggers["sidecar"].finished
    if done is None or not done.tags:
        return "The sidecar wrote no usable tags."
    words = f"The sidecar attended to {done.kv_tokens:,} tokens"
    if settings.task in SIGNS:
        words = f"{_leaks(done.tags, report.text, document, SIGNS[settings.task])}. {words}"
    other_way = "attended" if settings.document_masking else "masked"
    for run in reversed(earlier):
        other = run.report.taggers["sidecar"].finished
        if (
            other
            and comparable(run.settings, settings)
            and run.settings.document_masking != settings.document_masking
        ):
            return f"{words}; with the document {other_way}, to {other.kv_tokens:,}."
    return words + "."


def _leaks(tags: Sequence[str], summary: str, document: str, sign: str) -> str:
    places = {tag: ground(tag, summary, document) for tag in tags}
    leaks = {sign + tag: found.words for tag, found in places.items() if found.place == "document"}
    if leaks:
        words = list(dict.fromkeys(f"“{word}”" for found in leaks.values() for word in found))
        verbs = "leaks" if len(leaks) == 1 else "leak", "is" if len(words) == 1 else "are"
        return f"{', '.join(leaks)} {verbs[0]}: {', '.join(words)} {verbs[1]} only in the document"
    inside = sum(found.place == "summary" for found in places.values())
    return f"No leaks: {inside} of {len(places)} tags in the summary, no word only in the document"
