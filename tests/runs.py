"""Handmade runs for tests of the page: events as the engine would give them, no model behind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from sidecar_core.errors import SidecarError
from sidecar_core.events import (
    Event,
    PhaseChanged,
    PlainPass,
    PrefillProgress,
    RoundStarted,
    RunFinished,
    RunStarted,
    SummaryFinished,
    TagsFinished,
    TagText,
    TokenAccepted,
    TokenBonus,
    TokenCorrected,
    TokenDrafted,
    TokenRejected,
)
from sidecar_core.prompts import Article
from sidecar_core.settings import RunSettings

SEGMENTS = (("head", 20), ("document", 100), ("instruction", 18), ("suffix", 25), ("tail", 5))

HOSTILE = "<img src=x onerror=alert(1)>"


def started(settings: RunSettings = RunSettings()) -> RunStarted:  # noqa: B008
    return RunStarted("toy", "fp32", "cpu", settings.as_dict(), SEGMENTS, 143, 168, 25, (0, 0))


def one_round(
    number: int,
    kept: list[tuple[str, float]],
    rejected: tuple[str, float] | None = None,
    own: str = "",
    gamma: int = 4,
) -> list[Event]:
    """A round whose drafts are `kept`, then perhaps one rejected; `own` is the target's token.

    Drafts are (text, overlap). Behind a rejection the block is filled up with drafts that are
    never judged.
    """
    at = float(number)
    drafts = [*kept, *([rejected] if rejected else [])]
    filler = [(" never", 0.5)] * (gamma - len(drafts)) if rejected else []
    events: list[Event] = [RoundStarted(number, gamma, at)]
    events += [
        TokenDrafted(number, place, 7, text, None, 0.9, None, None, at)
        for place, (text, _) in enumerate([*drafts, *filler])
    ]
    events += [
        TokenAccepted(number, place, 7, text, 0.8, 0.9, overlap, 0.25, at)
        for place, (text, overlap) in enumerate(kept)
    ]
    if rejected:
        text, overlap = rejected
        events.append(TokenRejected(number, len(kept), 8, text, 0.1, 0.9, overlap, 0.75, at))
        events.append(TokenCorrected(number, len(kept), 9, own, 0.6, 0.2, overlap, None, at))
    elif own:
        events.append(TokenBonus(number, len(kept), 9, own, 0.6, None, None, None, at))
    return events


def whole_run(settings: RunSettings = RunSettings(), tag: str = "plant") -> list[Event]:  # noqa: B008
    """Two rounds, both taggers; the summary is "- The plant\\n<b>closed</b>" with markup in it."""
    return [
        started(settings),
        PhaseChanged("prefill", 0.0),
        PrefillProgress("target", 143, 143, 0.1),
        PhaseChanged("summary", 0.2),
        *one_round(0, [("-", 0.9), (" The", 0.8)], (" factory", 0.4), " plant"),
        PlainPass(0, 0.25, False, 1.0),
        *one_round(1, [("\n", 1.0), ("<b>", 0.9), ("closed", 0.7), ("</b>", 0.9)], own=""),
        SummaryFinished("- The plant\n<b>closed</b>", (7, 7, 9, 7, 7, 7, 7), "stop", 2, 8, 2.0),
        PhaseChanged("tagging", 2.0),
        TagText("sidecar", 1, f'"{tag}', 2.1),
        TagText("standalone", 1, '"closed', 2.1),
        TagsFinished("sidecar", f'"{tag}"]', (tag, HOSTILE), "[", 68, 2_000_000, 30, 1.25),
        TagsFinished("standalone", '"closed"]', ("closed",), "[", 90, 1_500, 80, 1.5),
        PhaseChanged("done", 3.0),
        RunFinished("stop", {"total": 3.0}, 3.0),
    ]


class Tokens:
    """Stands in for the prompt builder: a token is a word."""

    def plain(self, text: str) -> tuple[int, ...]:
        return tuple(range(len(text.split())))

    def first_tokens(self, text: str, n: int) -> str:
        return " ".join(text.split()[:n])


class ScriptedEngine:
    """Plays events; between rounds it asks `stop`, as the engine does. Counts what was asked."""

    def __init__(self, events: Callable[[RunSettings], list[Event]] = whole_run) -> None:
        self.prompts = Tokens()
        self.events = events
        self.pause = 0.0
        self.error: Exception | None = None
        self.calls = 0
        self.active = 0
        self.most_active = 0

    def article_limit(self, settings: RunSettings) -> int:
        return 200

    def segments(self, article: Article, settings: RunSettings) -> tuple[tuple[str, int], ...]:
        return tuple((n, len(article.text.split()) if n == "document" else k) for n, k in SEGMENTS)

    def stream(
        self, article: Article, settings: RunSettings, stop: Callable[[], bool]
    ) -> Iterator[Event]:
        self.calls += 1
        if len(article.text.split()) > self.article_limit(settings):
            raise SidecarError("The article is too long.")
        return self._play(settings, stop)

    def _play(self, settings: RunSettings, stop: Callable[[], bool]) -> Iterator[Event]:
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        try:
            for n, event in enumerate(self.events(settings)):
                if isinstance(event, RoundStarted) and stop():
                    yield SummaryFinished("", (), "cancelled", 0, 0, 1.0)
                    yield RunFinished("cancelled", {}, 1.0)
                    return
                if n == 3 and self.error:
                    raise self.error
                time.sleep(self.pause)
                yield event
        finally:
            self.active -= 1
