"""The leak test's settings, samples and counts, apart from what makes them (`leak`).

A sample leaks when one of its tags has a word that stands only in the document (`grounding`). A
watched word is counted in any spelling.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sidecar_core.errors import SidecarError
from sidecar_core.experiments.corpus import Document
from sidecar_core.experiments.readings import Step
from sidecar_core.experiments.stats import Count, difference
from sidecar_core.grounding import Grounding, ground, names
from sidecar_core.language.words import tokens
from sidecar_core.settings import RunSettings
from sidecar_core.tasks import get_task
from sidecar_core.text import has_half_characters

if TYPE_CHECKING:
    from sidecar_core.decoding.batch import Sample

CONDITIONS = ("attended", "masked", "recomputed", "standalone")
MAX_SAMPLES = 500
MAX_WATCH = 100

COMPARED = (
    ("attended", "masked"),
    ("attended", "standalone"),
    ("masked", "recomputed"),
    ("masked", "standalone"),
)
"""Pairs whose leak rates are tested against each other."""


@dataclass(frozen=True, slots=True)
class LeakSettings:
    """`watch` is a word to count in any spelling, "" for none. At temperature 0 all lists are
    the same, so there is only one sample."""

    samples: int = 60
    temperature: float = 0.7
    seed: int = 0
    watch: str = ""
    conditions: tuple[str, ...] = CONDITIONS
    task: str = "hashtags"

    def validate(self) -> LeakSettings:
        """The settings to use (one sample at temperature 0), or SidecarError."""
        if not 1 <= self.samples <= MAX_SAMPLES:
            raise SidecarError(f"samples is {self.samples}; it must be from 1 to {MAX_SAMPLES}.")
        if not self.conditions:
            raise SidecarError(f"Name at least one condition of {', '.join(CONDITIONS)}.")
        if unknown := set(self.conditions) - set(CONDITIONS):
            raise SidecarError(
                f"There is no condition {', '.join(sorted(unknown))}; choose from "
                f"{', '.join(CONDITIONS)}."
            )
        if len(self.watch) > MAX_WATCH:
            raise SidecarError(
                f"The word to watch has {len(self.watch):,} characters; the limit is {MAX_WATCH}. "
                "Type a word or a name."
            )
        if has_half_characters(self.watch):
            raise SidecarError(
                "The word to watch contains half a character (a lone surrogate); type it again."
            )
        if self.watch and not tokens(self.watch):
            raise SidecarError("The word to watch has no letters or digits; type a word.")
        self.run_settings().validate()
        get_task(self.task)
        return self if self.temperature else replace(self, samples=1)

    def run_settings(self) -> RunSettings:
        return RunSettings(temperature=self.temperature, seed=self.seed, task=self.task)


@dataclass(frozen=True, slots=True)
class Forced:
    """The summary that every tagger gets; `ids` may end with an end of text."""

    document: Document
    text: str
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sampled:
    """One tag list."""

    document: str
    condition: str
    sample: Sample


@dataclass(slots=True)
class LeakReport:
    """The fold over a leak test: what was counted so far, at any moment."""

    watch: str = ""
    forced: Forced | None = None
    lists: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)
    _places: dict[str, Grounding] = field(default_factory=dict)
    _named: dict[str, bool] = field(default_factory=dict)

    def add(self, event: Step | Forced | Sampled) -> None:
        """Take the next event."""
        match event:
            case Forced():
                self.forced = event
            case Sampled():
                self.lists.setdefault(event.condition, []).append(event.sample.tags)

    def snapshot(self) -> LeakReport:
        """What there is now, while another thread may add to it."""
        lists = {name: list(found) for name, found in list(self.lists.items())}
        return replace(self, lists=lists)

    def place(self, tag: str) -> Grounding:
        """Where `tag` stands. The summary must be known."""
        assert self.forced is not None
        if tag not in self._places:
            self._places[tag] = ground(tag, self.forced.text, self.forced.document.text)
        return self._places[tag]

    def leaks(self, condition: str) -> Count:
        """Samples with at least one tag that leaks, of all samples."""
        return self._samples(condition, lambda tag: self.place(tag).place == "document")

    def watched(self, condition: str) -> Count:
        """Samples with at least one tag that names the watched word."""
        return self._samples(condition, self.names)

    def names(self, tag: str) -> bool:
        """Whether `tag` names the watched word. The summary must be known."""
        if tag not in self._named:
            assert self.forced is not None
            self._named[tag] = bool(self.watch) and names(
                tag, self.watch, (self.forced.text, self.forced.document.text)
            )
        return self._named[tag]

    def tags(self, condition: str, place: str) -> Count:
        """Tags that stand in `place`, of all tags."""
        tags = [tag for found in self.lists.get(condition, []) for tag in found]
        return Count(sum(self.place(tag).place == place for tag in tags), len(tags))

    def _samples(self, condition: str, holds: Callable[[str], bool]) -> Count:
        lists = self.lists.get(condition, [])
        return Count(sum(any(map(holds, tags)) for tags in lists), len(lists))

    def counts(self) -> dict[str, Counter[str]]:
        """In how many samples each tag comes, by condition."""
        return {
            name: Counter(tag for tags in found for tag in dict.fromkeys(tags))
            for name, found in self.lists.items()
        }

    def as_dict(self) -> dict[str, Any]:
        """The result object of `leak --json`."""
        return {
            "summary": self.forced.text if self.forced else None,
            "watch": self.watch or None,
            "conditions": {name: self._condition(name) for name in self.lists},
            "differences": {
                f"{one} - {other}": found.as_dict()
                for one, other in COMPARED
                if (found := difference(self.leaks(one), self.leaks(other)))
            },
            "tags": self._tags(),
        }

    def _condition(self, name: str) -> dict[str, Any]:
        leaks, only_document = self.leaks(name), self.tags(name, "document")
        watched = self.watched(name) if self.watch else None
        return {
            "samples": leaks.trials,
            "leaks": leaks.hits,
            "rate": leaks.rate,
            "ci95": leaks.ci95,
            "watched": watched.hits if watched else None,
            "watched_ci95": watched.ci95 if watched else None,
            "tags": only_document.trials,
            "tags_only_in_document": only_document.hits,
            "tags_in_neither": self.tags(name, "neither").hits,
        }

    def _tags(self) -> list[dict[str, Any]]:
        counts = self.counts()
        total: Counter[str] = sum(counts.values(), Counter())
        return [
            {
                "tag": tag,
                "place": self.place(tag).place,
                "words": list(self.place(tag).words),
                "passage": self.place(tag).passage,
                "watched": self.names(tag),
                "samples": {name: found[tag] for name, found in counts.items()},
            }
            for tag, _ in total.most_common()
        ]
