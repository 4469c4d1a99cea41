"""The recordings that come with the program, and the tour that they tell."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sidecar_core.errors import SidecarError
from sidecar_core.recording import Recording, read_recording
from sidecar_core.scenarios import SCENARIOS, find_scenario
from sidecar_core.view.player import record_of
from sidecar_core.view.runs_table import RunRecord
from sidecar_core.view.tour import untold

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RecordingShelf:
    """The recordings that come with the program, by the name in the list; `files` are these names
    by the name of the file, without its ending."""

    found: dict[str, Recording]
    files: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path) -> RecordingShelf:
        """The folder's .jsonl files; an invalid one is logged and skipped."""
        recordings = []
        for path in sorted(folder.glob("*.jsonl")):
            try:
                recordings.append((read_recording(path.read_bytes()), path.stem))
            except (SidecarError, OSError) as error:
                log.warning("Skipping the recording %s: %s", path.name, error)
        recordings.sort(key=lambda r: (r[0].header.title, _place(r[0])))
        return cls({_name(r): r for r, _ in recordings}, {file: _name(r) for r, file in recordings})

    def name_of(self, recording: Recording | None) -> str:
        """The name of a recording's file; "" if it is none of these."""
        files = (
            f
            for f, n in self.files.items()
            if recording and self.found[n].events is recording.events
        )
        return next(files, "")

    def earlier(self, recording: Recording) -> list[RunRecord]:
        """The recordings of the same article under the scenarios before this one's."""
        return [
            record_of(other, _place(other) + 1)
            for other in self.found.values()
            if recording.article is not None
            and _subject(other) == _subject(recording)
            and _place(other) < _place(recording)
        ]

    def story(self) -> list[tuple[Recording, Sequence[RunRecord]]]:
        """The scenes of the tour, each with the runs to compare it with: the five scenarios on the
        article whose α falls furthest with the suffix visible, of those that tell the whole story;
        [] if none does."""
        runs: dict[Any, dict[str, RunRecord]] = {}
        for recording in self.found.values():
            scenario = find_scenario(recording.header.scenario)
            if scenario and recording.article:
                run = record_of(recording, _place(recording) + 1)
                runs.setdefault(_subject(recording), {})[scenario.key] = run
        told = {subject: found for subject, found in runs.items() if not untold(found)}
        best = max(told, key=lambda subject: _fall(told[subject]), default=None)
        scenes = [
            r
            for r in self.found.values()
            if _subject(r) == best and find_scenario(r.header.scenario)
        ]
        return [(scene, self.earlier(scene)) for scene in scenes]


def _fall(runs: Mapping[str, RunRecord]) -> float:
    return (runs["identical"].report.alpha or 0.0) - (runs["suffix-visible"].report.alpha or 0.0)


def _subject(recording: Recording) -> tuple[str | None, str, str]:
    return recording.article, recording.header.pair, recording.header.precision


def _place(recording: Recording) -> int:
    """The index of its scenario; those without one come last."""
    scenario = find_scenario(recording.header.scenario)
    return SCENARIOS.index(scenario) if scenario else len(SCENARIOS)


def _name(recording: Recording) -> str:
    scenario = find_scenario(recording.header.scenario)
    return recording.header.title + (f" – {scenario.title}" if scenario else "")
