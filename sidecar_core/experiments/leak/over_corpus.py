"""The corpus leak rate: over many articles, the share of tags that leak.

Each article goes through the leak test with its own target summary. Tags of one article depend on
each other, so intervals are those of articles (`stats.clustered`), and differences are paired. An
article that got no tags says nothing of them: it is counted apart and is not among `documents`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sidecar_core.decoding.engine import Engine, never
from sidecar_core.errors import SidecarError
from sidecar_core.experiments.commands import skipped_as_list
from sidecar_core.experiments.corpus import Document, Skipped
from sidecar_core.experiments.leak.report import (
    COMPARED,
    Forced,
    LeakReport,
    LeakSettings,
    Sampled,
)
from sidecar_core.experiments.leak.sampling import leak_test
from sidecar_core.experiments.readings import Step
from sidecar_core.experiments.records import RecordStore
from sidecar_core.experiments.stats import Clusters, Count
from sidecar_core.experiments.tables import as_csv

SAMPLES = 8
"""Tag lists of each article under each condition, unless something else is asked for."""


def corpus_leak_test(
    engine: Engine,
    documents: Iterable[Document],
    settings: LeakSettings,
    *,
    records: RecordStore | None = None,
    stop: Callable[[], bool] = never,
) -> Iterator[Step | Forced | Sampled | Skipped]:
    """The leak test's events for one article after the other; one that cannot be used is a Skipped.

    Ends early once `stop` says so. Raises SidecarError for settings out of range.
    """
    settings.validate()
    for document in documents:
        try:
            yield from leak_test(engine, document, settings, records=records, stop=stop)
        except SidecarError as error:
            yield Skipped(document.id, str(error))
        if stop():
            return


@dataclass(slots=True)
class CorpusLeaks:
    """The fold over a corpus leak test. Articles count once they went through all conditions."""

    settings: LeakSettings
    reports: dict[str, LeakReport] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)

    def add(self, event: Step | Forced | Sampled | Skipped) -> None:
        """Take the next event."""
        match event:
            case Forced():
                report = LeakReport(self.settings.watch)
                report.add(event)
                self.reports[event.document.id] = report
            case Sampled():
                self.reports[event.document].add(event)
            case Skipped():
                self.skipped.append(event)

    @property
    def complete(self) -> dict[str, LeakReport]:
        """Articles that went through all conditions, by id."""
        wanted = [self.settings.samples] * len(self.chosen)
        return {
            name: report
            for name, report in self.reports.items()
            if [len(report.lists.get(c, [])) for c in self.chosen] == wanted
        }

    def as_dict(self) -> dict[str, Any]:
        """The result object of `leak --json` for several articles."""
        done = self.complete
        by_tags, by_samples = (
            {c: _clusters([counted(r, c) for r in done.values()]) for c in self.chosen}
            for counted in (lambda r, c: r.tags(c, "document"), LeakReport.leaks)
        )
        tagged = sum(map(any, zip(*(by_tags[c].trials for c in self.chosen), strict=True)))
        return {
            "documents": tagged,
            "without_tags": len(done) - tagged,
            "watch": self.settings.watch or None,
            "conditions": {c: self._condition(c, by_samples[c], by_tags[c]) for c in self.chosen},
            "differences": {
                f"{one} - {other}": found
                for one, other in COMPARED
                if one in by_tags
                and other in by_tags
                and (found := by_tags[one].minus(by_tags[other]))
            },
            "per_document": self.table(),
            "skipped": skipped_as_list(self.skipped),
        }

    @property
    def chosen(self) -> tuple[str, ...]:
        return self.settings.conditions

    def _condition(self, condition: str, samples: Clusters, tags: Clusters) -> dict[str, Any]:
        done = self.complete.values()
        watch = self.settings.watch
        return {
            "samples": samples.count.trials,
            "leaks": samples.count.hits,
            "rate": samples.count.rate,
            "ci95": samples.ci95,
            "watched": sum(r.watched(condition).hits for r in done) if watch else None,
            "documents": tags.documents,
            "tags": tags.count.trials,
            "tags_only_in_document": tags.count.hits,
            "tags_in_neither": sum(r.tags(condition, "neither").hits for r in done),
            "tag_rate": tags.count.rate,
            "tag_ci95": tags.ci95,
        }

    def table(self) -> list[dict[str, Any]]:
        """One row for each article and condition."""
        return [
            {
                "document": name,
                "condition": condition,
                "samples": report.leaks(condition).trials,
                "leaks": report.leaks(condition).hits,
                "tags": report.tags(condition, "document").trials,
                "in_summary": report.tags(condition, "summary").hits,
                "only_in_document": report.tags(condition, "document").hits,
                "in_neither": report.tags(condition, "neither").hits,
            }
            for name, report in self.complete.items()
            for condition in self.chosen
        ]


def _clusters(counts: Sequence[Count]) -> Clusters:
    """One count for each article."""
    return Clusters(tuple(c.hits for c in counts), tuple(c.trials for c in counts))


def table_csv(table: list[dict[str, Any]]) -> str:
    """Rows as CSV with a header; "" for none."""
    return as_csv([list(table[0]), *(list(row.values()) for row in table)]) if table else ""
