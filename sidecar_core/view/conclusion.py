"""What a run ended in, and what changed against earlier runs on the same article.

`own` speaks of the run alone, `compared` of the difference; every number is from a report, and two
texts are called the same only if they are the same token for token. `compared` quotes nothing of
the document, so a recording without its article may hold it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sidecar_core.grounding import ground
from sidecar_core.report import RunReport, shown
from sidecar_core.scenarios import CHANGED, Scenario
from sidecar_core.settings import RunSettings
from sidecar_core.view.runs_table import RunRecord, changes, prompt_label
from sidecar_core.view.tag_column import NOUNS, SIGNS, UNSEEN

CONDITIONS = {
    "identical": "with identical prompts",
    "visible": "with the suffix visible",
    "masked": "with the suffix masked",
    "rebased": "with the suffix masked and positions rebased",
    "unrelated": "with an unrelated draft prompt",
}
"""The draft's prompt in words, by the label of `prompt_label`."""

NOTHING = "The run ended before there was anything to compare."


def comparable(a: RunSettings, b: RunSettings) -> bool:
    """Whether two runs differ in nothing but what the draft reads and when."""
    mine, other = a.as_dict(), b.as_dict()
    free = (*CHANGED, "draft_text", "positions")
    return all(mine[name] == other[name] for name in mine if name not in free)


def whole(report: RunReport) -> bool:
    """Whether the summary was finished."""
    return report.summary is not None and report.summary.reason != "cancelled"


def references(settings: RunSettings, earlier: Sequence[RunRecord]) -> list[RunRecord]:
    """The runs to compare α with: the latest comparable one for each other draft prompt, identical
    prompts first; where there is none, the latest run of all."""
    there = [run for run in earlier if whole(run.report) and run.report.alpha is not None]
    latest = {run.label: run for run in there if comparable(run.settings, settings)}
    latest.pop(prompt_label(settings), None)
    found = [latest[label] for label in CONDITIONS if label in latest]
    return found or there[-1:]


def difference(report: RunReport, settings: RunSettings, earlier: Sequence[RunRecord]) -> str:
    """How far α lies from the first reference's, as both are shown; "" without one."""
    found = references(settings, earlier)
    if not found or report.alpha is None or not whole(report):
        return ""
    step = round(report.alpha, 3) - round(found[0].report.alpha or 0.0, 3)
    other = found[0].label
    if other == prompt_label(settings):
        other = f"run {found[0].number}"
    return f"{signed(step)} against {other}"


def compared(
    settings: RunSettings,
    report: RunReport,
    earlier: Sequence[RunRecord],
    scenario: Scenario | None = None,
) -> str:
    """What changed against earlier runs: α and the text, or the tags; "" without such a run.

    The tags are compared where only the document's masking changed since the last run, or where
    the scenario is about them.
    """
    if not whole(report):
        return ""
    tags = _tags_compared(settings, report, earlier)
    if scenario.about_tags if scenario else tags and _only_the_document(settings, earlier):
        return tags
    found = references(settings, earlier)
    if not found or report.alpha is None:
        return ""
    return f"{_alphas(settings, report, found)} {_texts(report, found)}"


def own(settings: RunSettings, report: RunReport, document: str | None, alpha: bool = True) -> str:
    """What this run ended in: what the sidecar made, and the figures unless they are said already
    of this run and others."""
    if not whole(report):
        return NOTHING
    sentences = [_alpha_alone(settings, report)] if alpha else []
    done = report.taggers["sidecar"].finished
    if done is not None and not done.tags:
        what = NOUNS.get(settings.task, settings.task)
        sentences.append(f"The sidecar wrote no usable {what}.")
    elif done is not None:
        sentences.append(_tags(done.tags, settings, report.text, document))
        if alpha:
            sentences.append(f"The sidecar attended to {done.kv_tokens:,} tokens.")
    return " ".join(sentences)


def _alpha_alone(settings: RunSettings, report: RunReport) -> str:
    passes = f"{shown(report.tokens_per_pass, 2)} tokens per target pass"
    if report.alpha is None:
        return f"Nothing was drafted: {passes}."
    return f"α is {report.alpha:.3f} {CONDITIONS[prompt_label(settings)]}; {passes}."


def _alphas(settings: RunSettings, report: RunReport, found: Sequence[RunRecord]) -> str:
    alpha, here = report.alpha or 0.0, CONDITIONS[prompt_label(settings)]
    if len(found) > 1:
        others = [
            f"{run.report.alpha:.3f} {CONDITIONS[run.label]} (run {run.number})" for run in found
        ]
        return f"α is {alpha:.3f} {here}, {', '.join(others[:-1])} and {others[-1]}."
    (run,) = found
    before = run.report.alpha or 0.0
    other = f" {CONDITIONS[run.label]}"
    if not comparable(run.settings, settings) or run.label == prompt_label(settings):
        other, here = "", changes(settings, run.settings) or "the settings are the same"
        here = f"({here})"
    step = round(alpha, 3) - round(before, 3)
    if not round(step, 3):
        return f"α stayed at {alpha:.3f} {here}, as{other or ' it was'} in run {run.number}."
    word = "fell" if step < 0 else "rose"
    return f"α {word} from {before:.3f}{other} (run {run.number}) to {alpha:.3f} {here}."


def _texts(report: RunReport, found: Sequence[RunRecord]) -> str:
    others = [f"run {run.number}" for run in found if run.report.ids != report.ids]
    if others:
        that = "that" if len(others) == 1 else "those"
        return f"The text differs from {that} of {' and '.join(others)}."
    return "The text is the same, token for token."


def _only_the_document(settings: RunSettings, earlier: Sequence[RunRecord]) -> bool:
    if not earlier:
        return False
    last = earlier[-1].settings.as_dict() | {"document_masking": settings.document_masking}
    return last == settings.as_dict() != earlier[-1].settings.as_dict()


def _tags_compared(settings: RunSettings, report: RunReport, earlier: Sequence[RunRecord]) -> str:
    """The latest comparable run with the other document masking, in its numbers."""
    here = report.taggers["sidecar"].finished
    if here is None:
        return ""
    for run in reversed(earlier):
        done = run.report.taggers["sidecar"].finished
        if (
            done
            and comparable(run.settings, settings)
            and run.settings.document_masking != settings.document_masking
        ):
            way = "masked" if run.settings.document_masking else "attended"
            count = f"{done.kv_tokens:,} tokens (here {here.kv_tokens:,})"
            if run.leaks != "–":
                count += (
                    f", and {run.leaks} of {len(done.tags)} tags had words only in the document"
                )
            return f"In run {run.number}, with the document {way}, the sidecar attended to {count}."
    return ""


def _tags(tags: Sequence[str], settings: RunSettings, summary: str, document: str | None) -> str:
    if settings.task not in SIGNS:
        return f"The sidecar wrote its {NOUNS.get(settings.task, settings.task)}."
    sign = SIGNS[settings.task]
    places = {tag: ground(tag, summary, document or "") for tag in tags}
    inside = sum(found.place == "summary" for found in places.values())
    if document is None:
        return f"{inside} of {len(places)} tags are in the summary."
    outside = {sign + tag: found for tag, found in places.items() if found.place == "document"}
    if not outside:
        counted = f"{inside} of {len(places)} tags in the summary"
        return f"No leaks: {counted}, no word only in the document."
    words = list(dict.fromkeys(f"“{word}”" for found in outside.values() for word in found.words))
    are = "is" if len(words) == 1 else "are"
    names, listed = ", ".join(outside), ", ".join(words)
    if settings.document_masking:
        how = UNSEEN["sidecar"]
        return f"{names}: {listed} {are} only in the document, which was masked ({how})."
    leak = "leaks" if len(outside) == 1 else "leak"
    return f"{names} {leak}: {listed} {are} only in the document."


def signed(step: float) -> str:
    """A difference of α with its sign, three digits."""
    step = round(step, 3)
    return f"{'−' if step < 0 else '+' if step > 0 else '±'}{abs(step):.3f}"
