"""One visitor's turn at the models, from the click to its end: a run, or a lab's measurement.

`open_turn` goes around it: one turn at a time for each tab, a Stop, a limit in seconds, a place in
the line, and a word to those who watch. Whatever happens inside, the place and the tab are free
again behind it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from sidecar_core.errors import SidecarError
from sidecar_core.host.model_host import EngineLike, ModelHost
from sidecar_core.host.queue import Ticket, TimeLimit, place_in_words
from sidecar_core.host.session import Tab
from sidecar_core.host.watch import Kind, Watched
from sidecar_core.report import RunReport
from sidecar_core.view.render import status

WORDS = {"run": "run", "alpha": "measurement", "leak": "leak test"}
"""What a visitor calls each kind of turn."""


class Turn:
    """`stop` and `limit` end it; `engine` is there once it is its turn, unless it was stopped."""

    def __init__(self, host: ModelHost, tab: Tab, watched: Watched, visitor: str | None) -> None:
        self.stop = tab.stop
        self.limit = TimeLimit(
            self.stop, host.max_seconds if watched.kind == "run" else host.lab_seconds
        )
        self.engine: EngineLike | None = None
        self._host, self._tab, self._watched, self._visitor = host, tab, watched, visitor
        self._ticket: Ticket | None = None
        self._lock = threading.Lock()
        self._holders = 1  # the `with` block, and what it starts
        watched.follow(self.stop)

    def wait(self) -> Iterator[dict[str, str]]:
        """Status lines until the models are there and free. Raises SidecarError when they cannot
        be loaded, or when the line is too long."""
        host, self.engine = self._host, None
        if self._ticket is None:
            self._ticket = host.turnstile.enter(self._visitor, self.stop)
        host.start()
        while not self.limit():
            engine = host.engine()
            if engine is None:
                now = host.status()
                if now.state == "failed":
                    raise SidecarError(now.text)
                yield status(f"{now.text}. Your run begins by itself.", "busy", now.fraction)
            elif ahead := host.turnstile.ahead(self._ticket):
                seconds = host.turnstile.seconds(self._ticket)
                yield status(place_in_words(ahead, seconds), "busy")
            else:
                host.turnstile.begin(self._ticket)
                self.limit.begin()
                self.engine = engine
                return
            self.stop.wait(0.25)

    def begin(self) -> None:
        """Its input was accepted, and its work at the models begins now."""
        self._watched.begin()

    def let_others_pass(self) -> Iterator[dict[str, str]]:
        """Everybody who waits goes first, then `wait` again."""
        if self._ticket is not None:
            self._host.turnstile.step_back(self._ticket)
        return self.wait()

    def figures(self, report: RunReport) -> None:
        """Those who watch read the turn's figures in `report`."""
        self._watched.follow(self.stop, report)

    def keep(self) -> None:
        """The models are in use until `release`, maybe beyond the end of the `with` block."""
        with self._lock:
            self._holders += 1

    def release(self) -> None:
        """The models are free for the next one in the line."""
        self._host.turnstile.leave(self._ticket)
        self._let_go()

    def ending(self, stays: str) -> str | None:
        """How the turn ended early, or None; `stays` says what is left of it."""
        if self.limit.over:
            return f"{self.limit.words} {stays}"
        return f"Stopped. {stays}" if self.stop.is_set() else None

    def _close(self) -> None:
        self._watched.stopped = self.limit.over or self.stop.is_set()
        self.stop.set()
        self._let_go()

    def _let_go(self) -> None:
        """Place and tab are free once nobody holds them: what the page was to show is then shown,
        and the last forward pass is over."""
        with self._lock:
            self._holders -= 1
            last = self._holders == 0
        if last:
            self._host.turnstile.leave(self._ticket)
            self._tab.busy.release()


@contextlib.contextmanager
def open_turn(host: ModelHost, tab: Tab, watched: Watched, visitor: str | None) -> Iterator[Turn]:
    """Goes around one turn. `visitor` names who asks: one visitor has one place at the models or in
    the line. Raises SidecarError where the tab has a turn already."""
    tab.take(WORDS[watched.kind])
    turn = Turn(host, tab, watched, visitor)
    try:
        yield turn
    finally:
        turn._close()


@contextlib.contextmanager
def in_words(kind: Kind) -> Iterator[None]:
    """Turns an exception that nobody expected into one line without details."""
    try:
        yield
    except SidecarError:
        raise
    except Exception as error:
        words = f"The {WORDS[kind]} failed: {type(error).__name__}. Start it again."
        raise SidecarError(words) from error
