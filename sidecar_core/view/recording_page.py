"""A recording as one self-contained HTML file: no network, no server, no model.

The file shows the whole run and is readable without scripts; a small script hides parts of it to
play it from the beginning. Everything that a visitor or a model wrote is escaped. A policy in the
file allows only that script and those styles, which it identifies by their digests.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sidecar_core.events import (
    Candidates,
    Event,
    RoundStarted,
    SummaryFinished,
    TokenAccepted,
    TokenBonus,
    TokenCorrected,
    TokenDrafted,
    TokenRejected,
)
from sidecar_core.installed import ASSETS
from sidecar_core.recording import Recording
from sidecar_core.report import RunReport
from sidecar_core.scenarios import find_scenario
from sidecar_core.view.inspector import at_place
from sidecar_core.view.player import Timeline, banner, conclusion, steps
from sidecar_core.view.render import pending_text, text, tiles, token
from sidecar_core.view.run_view import ending
from sidecar_core.view.tag_column import column, unseen

SHOWN = (TokenAccepted, TokenRejected, TokenCorrected, TokenBonus)
"""The tokens that stay in the stream."""

FRAME_SECONDS = 0.1
"""Events closer together than this share a frame."""

STAGES = {
    None: "The models read the prompt.",
    "prefill": "The models read the prompt.",
    "summary": "The draft proposes tokens; the target judges them.",
    "tagging": "The sidecar and the standalone tagger take turns.",
    "done": "Done.",
}

WIDTH, HEIGHT, LEFT, BOTTOM = 420, 220, 40, 24


def recording_page(recording: Recording) -> str:
    """The whole file."""
    template = _template()
    report = RunReport.of(recording.events)
    points, chart = _chart(report)
    frames, stops = _frames(recording.events)
    raw = {name: tagger.text for name, tagger in report.taggers.items()}
    said = conclusion(recording)
    data = {"frames": frames, "stops": stops, "points": points, "raw": raw, "conclusion": said}
    pieces = {
        "style_hash": _digest(template, "style"),
        "script_hash": _digest(template, "script"),
        "banner": banner(recording),
        "title": text(recording.header.title),
        "status": text(_status(report)),
        "conclusion": text(said),
        **{name: text(value) for name, value in tiles(report).items()},
        "summary": "".join(_tokens(recording.events)),
        "chart": chart,
        "settings": _settings(recording),
        "data": json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
    }
    for tagger in ("sidecar", "standalone"):
        shown = column(
            report.taggers[tagger],
            report.text,
            recording.article,
            recording.settings.task,
            unseen=unseen(tagger, recording.settings),
        )
        pieces[tagger] = _column(shown)
        pieces[f"{tagger}_what"] = shown["what"]
    # In one pass: marks inside a piece are not replaced.
    return re.sub(r"{{(\w+)}}", lambda found: pieces[found[1]], template)


def _template() -> str:
    """The file's frame, with the inspector's script and styles in it."""
    template = (ASSETS / "recording.html").read_text(encoding="utf-8")
    for mark, name in (("/* inspector */", "inspector.css"), ("// inspector", "inspector.js")):
        template = template.replace(mark, (ASSETS / name).read_text(encoding="utf-8"), 1)
    return template


def _tokens(events: Sequence[Event]) -> Iterator[str]:
    candidates = None
    for event in events:
        if isinstance(event, Candidates):
            candidates = event
        elif isinstance(event, SHOWN):
            yield token(event, at_place(event, candidates))


def _digest(template: str, element: str) -> str:
    found = re.search(rf"<{element}>(.*?)</{element}>", template, flags=re.DOTALL)
    assert found
    return "sha256-" + base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()


@dataclass(slots=True)
class _Frame:
    """Fold of the events up to a moment into how much of the file is visible then."""

    report: RunReport = field(default_factory=RunReport)
    shown: int = 0
    pending: list[str] = field(default_factory=list)

    def add(self, event: Event) -> None:
        self.report.add(event)
        match event:
            case TokenDrafted():
                self.pending.append(pending_text(event))
            case TokenAccepted() | TokenRejected() | TokenCorrected() | TokenBonus():
                self.shown += bool(token(event))
                self.pending.clear()
            case RoundStarted() | SummaryFinished():
                self.pending.clear()

    def data(self, at: float) -> dict[str, Any]:
        taggers = {
            name: {"raw": len(report.text), "done": bool(report.finished or report.skipped)}
            for name, report in self.report.taggers.items()
        }
        return {
            "at": round(at, 2),
            "shown": self.shown,
            "pending": list(self.pending),
            "points": len(self.report.alpha_by_round),
            "status": _status(self.report),
            **tiles(self.report),
            **taggers,
        }


def _frames(events: Sequence[Event]) -> tuple[list[dict[str, Any]], list[int]]:
    """The frames, the first one empty, and the indices of the frames where single steps stop."""
    times = Timeline.of(events).at
    ends = set(steps(events))
    frame = _Frame()
    frames, stops = [frame.data(0.0)], list[int]()
    for n, event in enumerate(events, 1):
        frame.add(event)
        if n in ends or n == len(events) or times[n] - frames[-1]["at"] >= FRAME_SECONDS:
            frames.append(frame.data(times[n - 1]))
            if n in ends:
                stops.append(len(frames) - 1)
    return frames, stops


def _status(report: RunReport) -> str:
    if report.error:
        return report.error
    return ending(report) if report.finished else STAGES[report.phase]


def _chart(report: RunReport) -> tuple[list[str], str]:
    """Points of α over the rounds as "x,y", and the picture."""
    alphas = report.alpha_by_round
    values = [alpha for _, alpha in alphas] or [0.0, 1.0]
    low, high = min(values) - 0.02, max(values) + 0.02
    rounds = len(report.rounds)
    last = max(1, rounds - 1)

    def x(number: int) -> float:
        return LEFT + (WIDTH - LEFT - 12) * number / last

    def y(alpha: float) -> float:
        return 10 + (HEIGHT - BOTTOM - 10) * (high - alpha) / (high - low)

    points = [f"{x(number):.1f},{y(alpha):.1f}" for number, alpha in alphas]
    marks = [low + (high - low) * part / 3 for part in range(4)]
    lines = "".join(
        f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y(m):.1f}" y2="{y(m):.1f}"/>'
        f'<text x="{LEFT - 6}" y="{y(m) + 4:.1f}" text-anchor="end">{m:.2f}</text>'
        for m in marks
    )
    end = points[-1].split(",") if points else ("0", "0")
    seen = "visible" if points else "hidden"
    said = f"α after each of {rounds} rounds; final value {tiles(report)['alpha']}"
    return points, (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{said}">{lines}'
        f'<polyline id="line" points="{" ".join(points)}"/>'
        f'<circle id="dot" r="4.5" cx="{end[0]}" cy="{end[1]}" visibility="{seen}"/>'
        f'<text x="{WIDTH}" y="{HEIGHT - 4}" text-anchor="end">round {rounds}</text></svg>'
    )


def _column(shown: dict[str, str]) -> str:
    costs = "".join(
        f"<div><dt>{name}</dt><dd>{shown[key]}</dd></div>"
        for name, key in (
            ("attends to", "tokens"),
            ("cache", "bytes"),
            ("prefill", "prefilled"),
            ("time", "time"),
        )
    )
    if shown["tokens"] == "–":
        costs = ""
    return (
        '<p class="raw writing" hidden></p>'
        f'<div class="result">{shown["list"]}<p class="raw">{shown["raw"]}</p>'
        f'<dl class="costs">{costs}</dl></div>'
    )


def _settings(recording: Recording) -> str:
    settings, header, started = recording.settings, recording.header, recording.started
    scenario = find_scenario(header.scenario)
    switch = {True: "on", False: "off"}
    rows = {
        "Scenario": scenario.title if scenario else "",
        "The draft reads": settings.draft_prompt,
        "Unrelated text": settings.draft_text if settings.draft_prompt == "unrelated" else "",
        "Suffix masking": switch[settings.suffix_masking],
        "Document masking": switch[settings.document_masking],
        "Positions": settings.positions,
        "γ": f"{settings.gamma}",
        "Temperature": f"{settings.temperature:g}",
        "Top-p": f"{settings.top_p:g}",
        "Top-k": f"{settings.top_k}",
        "Longest summary": f"{settings.max_tokens} tokens",
        "Seed": f"{settings.seed}",
        "Task": settings.task,
        "Prompt": f"target {started.target_tokens} tokens, draft {started.draft_tokens} tokens",
        "Software": ", ".join(f"{name} {version}" for name, version in header.software.items()),
    }
    return "".join(
        f"<div><dt>{name}</dt><dd><bdi>{text(value)}</bdi></dd></div>"
        for name, value in rows.items()
        if value
    )
