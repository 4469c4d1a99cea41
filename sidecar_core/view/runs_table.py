"""Runs side by side: short labels for their settings, and the table that compares them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sidecar_core.grounding import ground
from sidecar_core.main_tasks import main_task_of
from sidecar_core.report import RunReport, shown
from sidecar_core.settings import RunSettings
from sidecar_core.view.render import attribute, text
from sidecar_core.view.tag_column import NOUNS, SIGNS

DEFAULTS = RunSettings()

NUMBERS = {
    "gamma": "γ",
    "temperature": "temperature",
    "top_k": "top-k",
    "top_p": "top-p",
    "max_tokens": "max. tokens",
    "seed": "seed",
}
"""The settings that are numbers → their names in the table."""

ENDINGS = {"stopped": "stopped", "timed_out": "stopped by the time limit"}


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run that ended. `number` counts the runs on its article, `article` is the article's key,
    `leaks` is the text of the table's last column."""

    settings: RunSettings
    report: RunReport
    number: int = 0
    article: str = ""
    leaks: str = "–"

    @property
    def label(self) -> str:
        return prompt_label(self.settings)


def prompt_label(settings: RunSettings) -> str:
    """The draft's prompt in one word: names a line in the chart."""
    if settings.draft_prompt != "compound":
        return settings.draft_prompt
    if not settings.suffix_masking:
        return "visible"
    return "rebased" if settings.positions == "rebased" else "masked"


def details(settings: RunSettings) -> str:
    """The other settings that differ from the defaults."""
    parts = []
    if settings.main_task != DEFAULTS.main_task:
        parts.append(main_task_of(settings).label.lower())
    if settings.task != DEFAULTS.task:
        parts.append(NOUNS.get(settings.task, settings.task))
    if settings.draft_prompt != "unrelated":
        parts.append("document " + ("masked" if settings.document_masking else "attended"))
    for name, sign in NUMBERS.items():
        if (value := getattr(settings, name)) != getattr(DEFAULTS, name):
            parts.append(f"{sign} {_number(value)}")
    return ", ".join(parts)


def changes(settings: RunSettings, before: RunSettings) -> str:
    """What differs between two runs, each with both values; "" if nothing does."""
    parts = []
    if prompt_label(settings) != prompt_label(before):
        parts.append(f"{prompt_label(settings)} instead of {prompt_label(before)}")
    if settings.document_masking != before.document_masking:
        parts.append("document " + ("masked" if settings.document_masking else "attended"))
    for name, sign in NUMBERS.items():
        new, old = getattr(settings, name), getattr(before, name)
        if new != old:
            parts.append(f"{sign} {_number(new)} instead of {_number(old)}")
    if not parts and settings != before:
        tasks = (settings.task, settings.main_task) != (before.task, before.main_task)
        return "another task" if tasks else "other settings"
    return ", ".join(parts)


def _number(value: float | str) -> str:
    return f"{value:g}" if isinstance(value, float) else f"{value}"


def leaks(report: RunReport, settings: RunSettings, document: str | None) -> str:
    """How many of the sidecar's tags leak; "–" if unknown."""
    done = report.taggers["sidecar"].finished
    if done is None or document is None or settings.task not in SIGNS:
        return "–"
    return str(sum(ground(tag, report.text, document).place == "document" for tag in done.tags))


def runs_table(records: Sequence[RunRecord]) -> str:
    """The runs on this article, the latest last."""
    if not records:
        return '<p class="quiet">Every run on this article adds a row to this table.</p>'
    rows = "".join(_row(record, record is records[-1]) for record in records)
    heads = "".join(
        f'<th scope="col" title="{attribute(tip)}">{name}</th>'
        for name, tip in (
            ("Run", "In the order in which the runs were started"),
            ("Draft prompt", "What the draft reads while it drafts the summary"),
            ("α", "Mean overlap of the two distributions over the judged positions"),
            ("Acceptance", "Accepted drafts divided by judged drafts"),
            ("Tokens/pass", "Tokens of the summary for each forward pass of the target"),
            ("Tokens/s", "Speed of the summary, without prefill"),
            ("× plain", "Tokens/s divided by those of plain decoding, timed in the same run"),
            ("Leaks", "The sidecar's tags with a word that is found only in the document"),
        )
    )
    return f'<table class="runs"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'


def _row(record: RunRecord, last: bool) -> str:
    report = record.report
    rate = report.acceptance_rate
    cells = (
        shown(report.alpha),
        "–" if rate is None else f"{rate:.0%}",
        shown(report.tokens_per_pass, 2),
        shown(report.tokens_per_second, 1),
        shown(report.speedup, 2),
        record.leaks,
    )
    notes = ", ".join(filter(None, (details(record.settings), ENDINGS.get(report.ending or ""))))
    return (
        f'<tr{" class=latest" if last else ""}><th scope="row">{record.number}</th>'
        f"<td>{text(record.label)}<small>{text(notes)}</small></td>"
        + "".join(f"<td>{text(cell)}</td>" for cell in cells)
        + "</tr>"
    )
