"""What one visitor has done: kept for each browser tab, never shared, gone with the tab."""

from __future__ import annotations

import threading
from typing import Any

from sidecar_core.errors import Busy
from sidecar_core.recording import Recording
from sidecar_core.view.runs_table import RunRecord

MAX_RUNS = 24
"""Older runs are dropped, so that a page that stays open for days does not grow."""


MAX_RECORDINGS = 8
"""Of runs, to be played side by side; an event of a summary takes about a kilobyte."""


class Tab:
    """State of one browser tab, or of a lab in it. Copying it gives a new, empty one: Gradio copies
    the page's initial value for each tab.

    `stop` belongs to the work in progress; `busy` is held until its last forward pass is over.
    """

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.busy = threading.Lock()

    def __deepcopy__(self, memo: dict[int, Any]) -> Tab:
        return type(self)()

    def take(self, what: str = "run") -> threading.Event:
        """Acquire `busy`, which the caller releases; returns a new `stop`. Raises Busy while work
        is in progress."""
        if not self.busy.acquire(timeout=5):
            raise Busy(f"A {what} is already in progress in this tab. Stop it first.")
        self.stop = threading.Event()
        return self.stop


class Session(Tab):
    """The runs of one tab.

    `runs` have ended; `recording` is of the run that is shown, once it has ended; `recorded` is the
    key of its article, "" if the recording came from a file. `shown` is the key of the article that
    the results on the page belong to, "" if it is not known. `recordings` are those of the latest
    runs, without their articles. A replay ends when other work starts.
    """

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[RunRecord] = []
        self.recording: Recording | None = None
        self.recorded = ""
        self.recordings: list[tuple[RunRecord, Recording]] = []
        self.shown = ""
        self.replaying = False

    def on(self, key: str) -> list[RunRecord]:
        """The runs on the article with this key, oldest first."""
        return [run for run in self.runs if run.article == key]

    def next_number(self, key: str) -> int:
        """The number of the next run on this article, from 1."""
        earlier = self.on(key)
        return earlier[-1].number + 1 if earlier else 1

    def keep(self, record: RunRecord, recording: Recording | None = None) -> None:
        """A run that has ended; a recording is that of the run that is shown."""
        self.runs.append(record)
        del self.runs[:-MAX_RUNS]
        if recording is not None:
            self.recording, self.recorded = recording, record.article
            self.recordings.append((record, recording))
            del self.recordings[:-MAX_RECORDINGS]

    def take(self, what: str = "run") -> threading.Event:
        if self.replaying:
            self.stop.set()
        return super().take(what)
