"""The fold over a run's events: every figure that the page, the command line and exports show.

`RunReport.add(event)` takes the events in order. At any moment the properties are the figures so
far. A ratio is None until something was judged: it is shown as "–", never as 0, 100 % or NaN.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sidecar_core.events import (
    DraftLost,
    Event,
    Phase,
    PhaseChanged,
    PlainPass,
    PrefillProgress,
    RoundStarted,
    RunFailed,
    RunFinished,
    RunStarted,
    SummaryFinished,
    TagsFinished,
    TagsSkipped,
    TagText,
    TokenAccepted,
    TokenBonus,
    TokenCorrected,
    TokenDrafted,
    TokenRejected,
)

Ending = Literal["finished", "stopped", "timed_out", "failed"]
"""How a run ended. A summary that was cut at its token limit is finished all the same."""


def ratio(part: float, whole: float) -> float | None:
    """`part / whole`, or None if `whole` is 0."""
    return part / whole if whole else None


def shown(value: float | None, digits: int = 3) -> str:
    """A ratio as text; "–" if it is None."""
    return "–" if value is None else f"{value:.{digits}f}"


@dataclass(slots=True)
class PlaceCount:
    """Counts for the tokens at one place of the draft block."""

    drafted: int = 0
    judged: int = 0
    accepted: int = 0


@dataclass(slots=True)
class RoundTally:
    """Counts for one round; `alpha` is the mean overlap over the run up to its end, None as long
    as the round has no overlap."""

    drafted: int = 0
    accepted: int = 0
    rejected: int = 0
    bonus: int = 0
    alpha: float | None = None

    @property
    def judged(self) -> int:
        return self.accepted + self.rejected


def alphas(rounds: Sequence[RoundTally]) -> list[tuple[int, float]]:
    """(round, α so far) for the rounds in which something was judged."""
    return [(n, r.alpha) for n, r in enumerate(rounds) if r.alpha is not None]


@dataclass(slots=True)
class TaggerReport:
    """What one tagger wrote; `finished` holds its costs once it is done."""

    text: str = ""
    finished: TagsFinished | None = None
    skipped: str | None = None

    def as_dict(self) -> dict[str, Any] | None:
        done = self.finished
        if done is None:
            return None
        return {
            "text": done.text,
            "tags": list(done.tags),
            "kv_tokens": done.kv_tokens,
            "kv_bytes": done.kv_bytes,
            "prefill_tokens": done.prefill_tokens,
            "seconds": round(done.seconds, 4),
        }


@dataclass(slots=True)
class RunReport:
    """State of one run, folded from its events."""

    started: RunStarted | None = None
    phase: Phase | None = None
    prefill: dict[str, PrefillProgress] = field(default_factory=dict)
    text: str = ""
    ids: list[int] = field(default_factory=list)
    overlaps: list[float] = field(default_factory=list)
    rounds: list[RoundTally] = field(default_factory=list)
    drafted: int = 0
    accepted: int = 0
    rejected: int = 0
    places: list[PlaceCount] = field(default_factory=list)
    summary_started: float | None = None
    last_token_seconds: float | None = None
    plain_passes: list[float] = field(default_factory=list)
    extra_seconds: float = 0.0
    tasks: dict[str, dict[str, TaggerReport]] = field(default_factory=dict)
    summary: SummaryFinished | None = None
    finished: RunFinished | None = None
    draft_lost: str | None = None
    """Why the target continued alone, if it did."""
    error: str | None = None
    timed_out: bool = False
    """Set by a host whose time limit stopped the run: the events only say "cancelled"."""

    @classmethod
    def of(cls, events: Iterable[Event]) -> RunReport:
        report = cls()
        for event in events:
            report.add(event)
        return report

    def add(self, event: Event) -> None:
        """Take the next event."""
        match event:
            case RunStarted():
                self.started = event
            case PhaseChanged():
                self.phase = event.phase
                if event.phase == "summary":
                    self.summary_started = event.seconds
            case PrefillProgress():
                self.prefill[event.model] = event
            case DraftLost():
                self.draft_lost = event.why
            case RoundStarted():
                self.rounds.append(RoundTally())
            case TokenDrafted():
                self.drafted += 1
                self._round.drafted += 1
                self._place(event.place).drafted += 1
            case TokenAccepted():
                self.accepted += 1
                self._round.accepted += 1
                self._judged(event)
                self._place(event.place).accepted += 1
                self._emit(event)
            case TokenRejected():
                self.rejected += 1
                self._round.rejected += 1
                self._judged(event)
            case TokenCorrected():
                self._emit(event)
            case TokenBonus():
                self._round.bonus += 1
                self._emit(event)
            case PlainPass():
                self.plain_passes.append(event.pass_seconds)
                self.extra_seconds += event.pass_seconds if event.extra else 0.0
            case TagText():
                self._tagger(event).text += event.text
            case TagsFinished():
                self._tagger(event).finished = event
            case TagsSkipped():
                self._tagger(event).skipped = event.why
            case SummaryFinished():
                self.summary = event
                self.text = event.text
            case RunFinished():
                self.finished = event
            case RunFailed():
                self.error = event.message

    def _tagger(self, event: TagText | TagsFinished | TagsSkipped) -> TaggerReport:
        return self.tasks.setdefault(event.task, _taggers())[event.tagger]

    @property
    def _round(self) -> RoundTally:
        if not self.rounds:  # events of a run whose beginning is missing
            self.rounds.append(RoundTally())
        return self.rounds[-1]

    @property
    def taggers(self) -> dict[str, TaggerReport]:
        """Both taggers of the first task."""
        return next(iter(self.tasks.values()), None) or _taggers()

    def _place(self, place: int) -> PlaceCount:
        while len(self.places) <= place:
            self.places.append(PlaceCount())
        return self.places[place]

    def _judged(self, event: TokenAccepted | TokenRejected) -> None:
        self._place(event.place).judged += 1
        if event.overlap is not None:
            self.overlaps.append(event.overlap)
            self._round.alpha = self.alpha

    def _emit(self, event: TokenAccepted | TokenCorrected | TokenBonus) -> None:
        self.ids.append(event.id)
        self.text += event.text
        self.last_token_seconds = event.seconds

    @property
    def ending(self) -> Ending | None:
        """How the run ended, None while it has not."""
        if self.error is not None:
            return "failed"
        if self.finished is None:
            return None
        if self.finished.reason == "cancelled":
            return "timed_out" if self.timed_out else "stopped"
        return "finished"

    @property
    def many(self) -> bool:
        """Whether the run had more than one task."""
        return len(self.tasks) > 1

    @property
    def judged(self) -> int:
        return self.accepted + self.rejected

    @property
    def emitted(self) -> int:
        return len(self.ids)

    @property
    def target_passes(self) -> int:
        return self.summary.target_passes if self.summary else len(self.rounds)

    @property
    def alpha(self) -> float | None:
        """Mean overlap over the judged positions."""
        return ratio(sum(self.overlaps), len(self.overlaps))

    @property
    def alpha_by_round(self) -> list[tuple[int, float]]:
        """(round, α so far) for the rounds in which something was judged."""
        return alphas(self.rounds)

    @property
    def acceptance_rate(self) -> float | None:
        """accepted / judged."""
        return ratio(self.accepted, self.judged)

    @property
    def efficiency(self) -> float | None:
        """accepted / drafted."""
        return ratio(self.accepted, self.drafted)

    @property
    def tokens_per_pass(self) -> float | None:
        """Emitted tokens per target pass; corrected and bonus tokens count."""
        return ratio(self.emitted, self.target_passes) if self.emitted else None

    @property
    def tokens_per_second(self) -> float | None:
        """Emitted tokens per second since the summary phase began, without prefill and without
        the extra passes that measure plain decoding."""
        if self.summary_started is None or self.last_token_seconds is None:
            return None
        seconds = self.last_token_seconds - self.summary_started - self.extra_seconds
        return ratio(self.emitted, seconds)

    @property
    def speedup(self) -> float | None:
        """Times as fast as plain decoding: tokens per second, times the median seconds of the
        target's passes over one row in this run; None until there was one."""
        speed = self.tokens_per_second
        if speed is None or not self.plain_passes:
            return None
        return speed * statistics.median(self.plain_passes)

    def as_dict(self) -> dict[str, Any]:
        """The result object of `run --json`."""
        started = self.started
        return {
            "summary": self.text,
            "summary_ids": list(self.ids),
            "alpha": self.alpha,
            "acceptance_rate": self.acceptance_rate,
            "efficiency": self.efficiency,
            "accepted": self.accepted,
            "judged": self.judged,
            "drafted": self.drafted,
            "emitted": self.emitted,
            "target_passes": self.target_passes,
            "tokens_per_pass": self.tokens_per_pass,
            "tokens_per_second": self.tokens_per_second,
            "speedup": self.speedup,
            "acceptance_by_place": [ratio(p.accepted, p.judged) for p in self.places],
            "finish_reason": self.summary.reason if self.summary else None,
            "ending": self.ending,
            **({"error": self.error} if self.error else {}),
            **({"draft_lost": self.draft_lost} if self.draft_lost else {}),
            **_as_dict(self.taggers),
            **({"tasks": {n: _as_dict(t) for n, t in self.tasks.items()}} if self.many else {}),
            "prompt_tokens": {
                "target": started.target_tokens if started else None,
                "draft": started.draft_tokens if started else None,
                "suffix": started.suffix_tokens if started else None,
            },
            "timings": dict(self.finished.timings) if self.finished else {},
            "pair": started.pair if started else None,
            "precision": started.precision if started else None,
            "settings": dict(started.settings) if started else {},
        }


def _taggers() -> dict[str, TaggerReport]:
    return {"sidecar": TaggerReport(), "standalone": TaggerReport()}


def _as_dict(taggers: dict[str, TaggerReport]) -> dict[str, Any]:
    return {name: tagger.as_dict() for name, tagger in taggers.items()}
