"""What one visitor has done: kept per browser tab, never shared, gone with the tab."""

from __future__ import annotations

import threading
from typing import Any

from sidecar_core.errors import SidecarError
from sidecar_core.prompts import article_key
from sidecar_core.recording import Recording
from sidecar_core.view.runs_table import RunRecord

MAX_RUNS = 24
"""Older runs are forgotten; a page that stays open for days does not grow."""


class Tab:
    """State of one browser tab, or of a lab in it. A copy is a new, empty one: the page's initial
    value is a model.

    `stop` belongs to what is under way; `busy` is held until that is over, to the last forward
    pass.
    """

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.busy = threading.Lock()

    def __deepcopy__(self, memo: dict[int, Any]) -> Tab:
        return type(self)()

    def take(self, what: str = "run") -> threading.Event:
        """Hold `busy`, for the caller to release; a new `stop`. Raises SidecarError while something
        is under way."""
        if not self.busy.acquire(timeout=5):
            raise SidecarError(f"A {what} is under way in this tab already; stop it first.")
        self.stop = threading.Event()
        return self.stop


class Session(Tab):
    """What was run in one tab.

    `runs` are those that ended; `recording` is of the run that is shown, once it has ended,
    `recorded` the key of its article, "" if it came from a file. A replay gives way to whatever
    comes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[RunRecord] = []
        self.recording: Recording | None = None
        self.recorded = ""
        self.replaying = False

    def on(self, article: str) -> list[RunRecord]:
        """The runs on this article, oldest first."""
        key = article_key(article)
        return [run for run in self.runs if run.article == key]

    def next_number(self, article: str) -> int:
        """Runs are numbered for each article by itself."""
        earlier = self.on(article)
        return earlier[-1].number + 1 if earlier else 1

    def keep(self, record: RunRecord) -> None:
        self.runs.append(record)
        del self.runs[:-MAX_RUNS]

    def take(self, what: str = "run") -> threading.Event:
        if self.replaying:
            self.stop.set()
        return super().take(what)
