"""A run as text in a terminal: a fold over its events, with colour where the terminal has it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from typing import TextIO

from tqdm import tqdm

from sidecar_core.events import (
    DraftLost,
    Event,
    LoadProgress,
    PhaseChanged,
    PrefillProgress,
    RunFailed,
    RunStarted,
    SummaryFinished,
    TagsFinished,
    TagsSkipped,
    TokenAccepted,
    TokenBonus,
    TokenCorrected,
    TokenEvent,
    TokenRejected,
)
from sidecar_core.report import RunReport, shown

STYLES = {
    TokenAccepted: ("38;5;32", "accepted"),
    TokenRejected: ("9;38;5;166", "rejected"),
    TokenCorrected: ("1;4;38;5;166", "corrected"),
    TokenBonus: ("4;38;5;35", "bonus"),
}
"""Colour and form (9 struck through, 1 bold, 4 underlined): colour alone tells nobody enough."""


def load_progress(stream: TextIO | None = None) -> Callable[[LoadProgress], None]:
    """A callback that shows LoadProgress events as progress bars; on standard error by default."""
    stream = stream or sys.stderr
    bar: tqdm | None = None

    def show(event: LoadProgress) -> None:
        nonlocal bar
        if bar is not None and (bar.desc != event.message + ": " or bar.total != event.total):
            bar.close()
            bar = None
        if event.total is None or event.done is None:
            print(event.message, file=stream)
            return
        if bar is None:
            size = {"unit_scale": True, "unit_divisor": 1024} if event.unit == "B" else {}
            bar = tqdm(total=event.total, desc=event.message, unit=event.unit, file=stream, **size)
        bar.update(event.done - bar.n)
        if event.done >= event.total:
            bar.close()
            bar = None

    return show


def harmless(text: str) -> str:
    """`text` without the control characters that a terminal would obey."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "\ufffd", text)


class TerminalView:
    """Prints a run's events as they come: the summary in colour, then tags and figures."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self.out, self.err = out, err
        self.colour = out.isatty() and "NO_COLOR" not in os.environ
        self.report = RunReport()

    def show(self, event: Event) -> None:
        self.report.add(event)
        match event:
            case RunStarted():
                self._line(f"{event.pair} in {event.precision} on {event.device}. {event.note}")
                reused = sum(event.reused_tokens)
                if reused:
                    self._line(f"Prefix cache hit: {reused} tokens.")
            case PrefillProgress():
                end = "\n" if event.done == event.total else "\r"
                print(
                    f"Prefill of the {event.model}: {event.done} of {event.total} tokens",
                    end=end, file=self.err, flush=True,
                )  # fmt: skip
            case PhaseChanged(phase="summary"):
                self.out.write(self._legend())
            case TokenAccepted() | TokenRejected() | TokenCorrected() | TokenBonus():
                self._token(event)
            case DraftLost():
                self._line(f"\nThe draft failed: {event.why} The target continues alone.")
            case RunFailed():
                self._line(f"\nThe run failed: {event.message}")
            case SummaryFinished():
                self.out.write("\n\n")
                self._figures()
            case TagsFinished():
                self._tags(event)
            case TagsSkipped():
                self.out.write(f"No {event.tagger} tags: {harmless(event.why)}\n")

    def _line(self, text: str) -> None:
        print(harmless(text.rstrip()), file=self.err)

    def _paint(self, kind: type[TokenEvent], text: str) -> str:
        code, _ = STYLES[kind]
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text

    def _legend(self) -> str:
        if not self.colour:
            return ""
        return " ".join(self._paint(kind, name) for kind, (_, name) in STYLES.items()) + "\n\n"

    def _token(self, event: TokenAccepted | TokenRejected | TokenCorrected | TokenBonus) -> None:
        if isinstance(event, TokenRejected) and not self.colour:
            return  # plain text shows the summary alone
        text = harmless(event.text)
        if isinstance(event, TokenRejected):
            text = text.replace("\n", "⏎")
        self.out.write(self._paint(type(event), text))
        self.out.flush()

    def _figures(self) -> None:
        r = self.report
        speed = shown(r.tokens_per_second, 1)
        self.out.write(
            f"α {shown(r.alpha)} | acceptance rate {shown(r.acceptance_rate)} "
            f"({r.accepted} of {r.judged} judged, {r.drafted} drafted) | "
            f"{shown(r.tokens_per_pass, 2)} tokens per pass | {speed} tokens/s, "
            f"{shown(r.speedup, 2)} × plain decoding\n"
        )

    def _tags(self, event: TagsFinished) -> None:
        sign = "#" if event.task == "hashtags" else ""
        tags = harmless((" " if sign else "; ").join(sign + tag for tag in event.tags))
        self.out.write(
            f"{event.tagger}: {tags or '(none)'}\n  attended {event.kv_tokens} tokens "
            f"({event.kv_bytes / 1e6:.1f} MB of cache), prefilled {event.prefill_tokens}, "
            f"{event.seconds:.1f} s\n"
        )
