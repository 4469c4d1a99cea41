"""The judge over a corpus: both taggers' lists for each article, compared, counted and kept.

Every comparison is a line of a JSON Lines file, written as soon as it is made, under a key of
everything that it follows from. A run that was broken off goes on where it stopped; lines that
cannot be read (the last one of a killed run) are made again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sidecar_core.decoding.engine import Engine, never
from sidecar_core.errors import SidecarError
from sidecar_core.events import PrefillProgress, SummaryFinished, TagText, TokenEvent
from sidecar_core.experiments.commands import skipped_as_list
from sidecar_core.experiments.corpus import Document, Skipped
from sidecar_core.experiments.judge.judge import (
    MARGIN,
    Judge,
    Outcome,
    Verdict,
    compare,
    preference,
)
from sidecar_core.experiments.judge.rules import overlap, rules_of
from sidecar_core.experiments.readings import Step
from sidecar_core.experiments.stats import interval, left_out, sign_test
from sidecar_core.files import file_errors
from sidecar_core.language.stems import language_of
from sidecar_core.report import RunReport, ratio
from sidecar_core.settings import RunSettings
from sidecar_core.tasks import task_of

FORMAT = 2
"""Part of the key: a change of what is compared leaves older lines aside."""

PUBLISHED = {"comparisons": 100, "ties": 86, "decided": [9, 5]}
"""The posts' figures for their big pair."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One article: both lists and what became of them. `verdicts` are those with the sidecar's
    list first and with the standalone's first; none for identical lists."""

    key: str
    id: str
    summary: str
    sidecar: tuple[str, ...]
    standalone: tuple[str, ...]
    outcome: Outcome
    verdicts: tuple[Verdict, ...]
    rules: dict[str, dict[str, Any]]
    overlap: float | None


@dataclass(frozen=True, slots=True)
class Comparisons:
    """Comparisons in the JSON Lines file `path`; None keeps nothing."""

    path: Path | None

    def load(self) -> dict[str, Comparison]:
        """What is there, by key. Raises SidecarError for a file that cannot be read at all."""
        if self.path is None or not self.path.exists():
            return {}
        with file_errors("read", self.path):
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        found = (_of_json(line) for line in lines)
        return {c.key: c for c in found if c is not None}

    def append(self, comparison: Comparison) -> None:
        """Raises SidecarError where it cannot be written."""
        if self.path is None:
            return
        with file_errors("write", self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a+b") as file:
                if file.tell():
                    file.seek(-1, 2)
                    if file.read(1) != b"\n":  # a killed run's last line
                        file.write(b"\n")
                file.write(json.dumps(dataclasses.asdict(comparison)).encode() + b"\n")


def judge_corpus(
    engine: Engine,
    judge: Judge,
    documents: Iterable[Document],
    settings: RunSettings | None = None,
    *,
    kept: Comparisons | None = None,
    stop: Callable[[], bool] = never,
) -> Iterator[Step | Comparison | Skipped]:
    """Yields progress and, for every article in order, a Comparison or a Skipped.

    Both taggers run as they do on the page under `settings`. Ends early once `stop` says so.
    Raises SidecarError where `kept` cannot be read or written.
    """
    settings = (settings or RunSettings()).validate()
    if settings.draft_prompt == "unrelated":
        raise SidecarError("With an unrelated draft prompt there are no tags to compare.")
    kept = kept or Comparisons(None)
    known = kept.load()
    for document in documents:
        try:
            key = comparison_key(engine, judge, document, settings)
            made = known.get(key)
            if made is None:
                made = yield from _compare_one(engine, judge, document, settings, key, stop)
        except SidecarError as error:
            yield Skipped(document.id, str(error))
            continue
        if key not in known:
            if made is None:
                return
            kept.append(made)
            known[key] = made
        yield dataclasses.replace(known[key], id=document.id)
        if stop():
            return


def comparison_key(engine: Engine, judge: Judge, document: Document, settings: RunSettings) -> str:
    """Names a comparison by everything that it follows from, the prompts' words as tokens. Raises
    SidecarError for an article that cannot be used."""
    pair, task, words = engine.pair, task_of(settings), engine.prompts
    parts = [FORMAT, pair.target.fingerprint, pair.draft.fingerprint, judge.key]
    prompts = engine.build_prompts(document.text, settings)
    asked = [prompts.target.parts, prompts.draft.parts, words.standalone("", task.suffix).parts]
    writes = [prompts.suffix, words.plain(task.cue), task.max_tokens]
    ends = [sorted(engine.stop_ids), sorted(engine.tag_stop_ids)]
    whole = json.dumps(
        [*parts, settings.as_dict(), asked, writes, ends, document.text], sort_keys=True
    )
    return hashlib.sha256(whole.encode()).hexdigest()[:32]


def _compare_one(
    engine: Engine,
    judge: Judge,
    document: Document,
    settings: RunSettings,
    key: str,
    stop: Callable[[], bool],
) -> Any:
    """Yields steps, returns a Comparison, or None when it was stopped."""
    report = RunReport()
    for event in engine.stream(document.text, settings, stop):
        report.add(event)
        match event:
            case PrefillProgress():
                stage = f"reading the article ({event.model})"
                yield Step(document.id, stage, event.done, event.total)
            case TokenEvent():
                yield Step(document.id, "writing the summary", report.emitted, settings.max_tokens)
            case TagText() | SummaryFinished():
                yield Step(document.id, "writing tags", 0, 1)
    for tagger in report.taggers.values():
        if tagger.skipped:
            raise SidecarError(tagger.skipped)
    done = [report.taggers[tagger].finished for tagger in ("sidecar", "standalone")]
    if report.finished is None or report.finished.reason == "cancelled" or None in done:
        return None
    sidecar, standalone = (finished.tags for finished in done if finished)
    yield Step(document.id, f"judging ({judge.name})", 0, 1)
    found, verdicts = compare(judge, report.text, sidecar, standalone)
    return Comparison(
        key,
        document.id,
        report.text,
        sidecar,
        standalone,
        found,
        verdicts,
        {
            "sidecar": rules_of(sidecar, report.text, document.text),
            "standalone": rules_of(standalone, report.text, document.text),
        },
        overlap(sidecar, standalone, language_of(document.text)),
    )


@dataclass(slots=True)
class JudgeReport:
    """The fold over a judging: what was counted so far, at any moment."""

    comparisons: list[Comparison] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    def add(self, event: Step | Comparison | Skipped) -> None:
        """Take the next event."""
        match event:
            case Comparison():
                self.comparisons.append(event)
            case Skipped():
                self.skipped.append(event)

    def as_dict(self) -> dict[str, Any]:
        """The result object of `judge --json`."""
        outcomes = [c.outcome for c in self.comparisons]
        wins, losses = outcomes.count("sidecar"), outcomes.count("standalone")
        return {
            "comparisons": len(outcomes),
            "ties": outcomes.count("tie"),
            "sidecar_wins": wins,
            "standalone_wins": losses,
            "p_value": sign_test(wins, losses),
            "identical_lists": sum(not c.verdicts for c in self.comparisons),
            "position_bias": self._bias(),
            "corrected": self._corrected(),
            "rules": {name: self._rules(name) for name in ("sidecar", "standalone")},
            "overlap": _mean([c.overlap for c in self.comparisons if c.overlap is not None]),
            "published": PUBLISHED,
            "per_document": [dataclasses.asdict(c) for c in self.comparisons],
            "skipped": skipped_as_list(self.skipped),
        }

    def _bias(self) -> dict[str, Any]:
        """How often each place won, whichever list stood there; `agreed` is the share of
        comparisons in which both orders said the same."""
        asked = [c for c in self.comparisons if c.verdicts]
        answers = [verdict.answer for c in asked for verdict in c.verdicts]
        first, second = answers.count("first"), answers.count("second")
        agreed = sum(c.outcome != "tie" or {v.answer for v in c.verdicts} == {"tie"} for c in asked)
        return {
            "first": first,
            "second": second,
            "tie": answers.count("tie"),
            "p_value": sign_test(first, second),
            "agreed": ratio(agreed, len(asked)),
            "log_odds": _mean([p.place for c in asked if (p := preference(c.verdicts))]),
        }

    def _corrected(self) -> dict[str, Any]:
        """The order-corrected rule beside the strict one: `quality` is the mean log-odds for the
        sidecar's list, with its interval over the articles."""
        found = [p for c in self.comparisons if (p := preference(c.verdicts))]
        outcomes = [p.outcome for p in found]
        wins, losses = outcomes.count("sidecar"), outcomes.count("standalone")
        quality = np.array([p.quality for p in found])
        mean, each = _mean(quality.tolist()), np.ones(len(found))
        return {
            "margin": MARGIN,
            "ties": outcomes.count("tie"),
            "sidecar_wins": wins,
            "standalone_wins": losses,
            "p_value": sign_test(wins, losses),
            "quality": mean,
            "ci95": None
            if mean is None
            else interval(mean, left_out(quality[:, None], each)[:, 0]),
        }

    def _rules(self, tagger: str) -> dict[str, float | None]:
        """Means over the articles."""
        found = [c.rules[tagger] for c in self.comparisons]
        return {name: _mean([float(r[name]) for r in found]) for name in (found or [{}])[0]}


def _mean(values: Sequence[float]) -> float | None:
    return ratio(sum(values), len(values))


def _of_json(line: str) -> Comparison | None:
    try:
        data = json.loads(line)
        data["verdicts"] = tuple(Verdict(**verdict) for verdict in data["verdicts"])
        for name in ("sidecar", "standalone"):
            data[name] = tuple(data[name])
        return Comparison(**data)
    except (ValueError, KeyError, TypeError):
        return None
