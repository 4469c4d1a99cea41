"""One measurement in the α lab as a stream of views: results of `measure` in, the page out.

A view comes at most ten times a second. Between two articles other visitors get their turn at the
models. Stop, and a tab that closes, end the measurement within one forward pass; what was measured
until then stays, in the session and on the page.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sidecar_core.errors import SidecarError
from sidecar_core.experiments.alpha.conditions import Condition, check_names, choose
from sidecar_core.experiments.alpha.pooling import BASELINE, pool
from sidecar_core.experiments.alpha.published import as_dict
from sidecar_core.experiments.alpha.sweep import LENGTHS, pool_sweep, sweep_conditions
from sidecar_core.experiments.alpha.tables import alpha_csv, sweep_csv
from sidecar_core.experiments.corpus import Document, Skipped
from sidecar_core.experiments.readings import GAMMA, MAX_TOKENS, DocumentAlpha, Step
from sidecar_core.experiments.records import InMemory
from sidecar_core.host.model_host import ModelHost
from sidecar_core.host.session import Tab
from sidecar_core.host.turn import Turn, in_words, open_turn
from sidecar_core.host.zero_gpu import lab_seconds, take
from sidecar_core.tasks import HASHTAGS
from sidecar_core.view import alpha_results as figures
from sidecar_core.view.pace import CHARTS_PER_SECOND, UPDATES_PER_SECOND, Pace
from sidecar_core.view.render import status

STAYS = "What was measured so far stays."

Kind = Literal["conditions", "lengths"]


@dataclass(frozen=True, slots=True)
class View:
    """What a measurement changes on the page; `figure` is None where it stays as it is."""

    status: dict[str, str]
    figure: str | None
    running: bool


class LabSession(Tab):
    """State of one browser tab's lab.

    `documents` are those of an upload, `records` what this tab has measured (in memory only),
    `latest` the measurement shown.
    """

    def __init__(self) -> None:
        super().__init__()
        self.documents: tuple[Document, ...] = ()
        self.skipped: tuple[Skipped, ...] = ()
        self.records = InMemory()
        self.latest: Measurement | None = None


@dataclass(slots=True)
class Measurement:
    """Fold of `measure`'s items into what the page shows and what can be saved."""

    kind: Kind
    names: tuple[str, ...]
    total: int
    skipped: list[Skipped] = field(default_factory=list)
    results: list[DocumentAlpha] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)
    step: Step | None = None
    failed: int = 0
    _partial: dict[str, Step] = field(default_factory=dict)
    _pooled: dict[str, Any] | None = None

    def add(self, item: Step | DocumentAlpha | Skipped) -> None:
        """Take the next item."""
        match item:
            case Step():
                self.step = item
                if item.condition:
                    self._partial[item.condition] = item
            case DocumentAlpha():
                self.results.append(item)
                self._partial.clear()
            case Skipped():
                self.skipped.append(item)
                self.failed += 1
                self._partial.clear()

    def pooled(self) -> dict[str, Any]:
        """The articles that are done, as the command line would give them. May be asked for by
        another thread while the measurement goes on."""
        results, found = list(self.results), self._pooled
        if found is None or found["documents"] != len(results):
            if self.kind == "conditions":
                found = pool(results, gamma=GAMMA, max_tokens=MAX_TOKENS)
            else:
                found = pool_sweep(results, LENGTHS)
            self._pooled = found
        return found

    def saved(self) -> dict[str, Any]:
        """The JSON to download."""
        skipped = [{"where": s.where, "why": s.why} for s in list(self.skipped)]
        return self.pooled() | self.about | {"skipped": skipped, "published": as_dict()}

    def csv(self) -> str:
        """The table to download."""
        result = self.pooled()
        return alpha_csv(result) if self.kind == "conditions" else sweep_csv(result)

    def status(self) -> dict[str, str]:
        """The stage in words, and how far the whole is."""
        finished = len(self.results) + self.failed
        where = f"Article {finished + 1} of {self.total}: " if self.total > 1 else ""
        stage = self.step.stage if self.step else "the models get ready"
        within = self.step.done / self.step.total if self.step and self.step.total else 0.0
        if self.total > 1:
            return status(f"{where}{stage}.", "busy", finished / self.total)
        return status(f"{stage[0].upper()}{stage[1:]}.", "busy", within)

    def figure(self, *, running: bool) -> str:
        """Bars or the cost's line, then everything in figures once the first article is done."""
        skipped = figures.skipped_list(self.skipped)
        result = self.pooled() if self.results else None
        if self.kind == "lengths":
            if result is None:
                return '<p class="quiet">The line appears with the first article.</p>' + skipped
            lengths = result["lengths"]
            return figures.cost_chart(lengths) + figures.cost_table(lengths) + skipped
        drawn = figures.bars([self._bar(name, result, running) for name in self.names])
        if result is None:
            return drawn + skipped
        return figures.verdict(result) + drawn + figures.tables(result) + skipped

    def _bar(self, name: str, result: dict[str, Any] | None, running: bool) -> figures.Bar:
        """One condition: pooled over what is done, with the article at work added to α alone."""
        partial = self._partial.get(name)
        done = partial.done / partial.total if partial else float(not running)
        found = result["conditions"][name] if result else None
        gap = result["differences"].get(name) if result else None
        alpha = found["alpha"] if found else None
        if partial and partial.alpha is not None:
            before = found["positions"] if found else 0
            alpha = ((alpha or 0.0) * before + partial.alpha * partial.done) / (
                before + partial.done
            )
        base = self._partial.get(BASELINE)
        if gap is None and partial and base and base.done == partial.done:
            own, other = partial.alpha or 0.0, base.alpha or 0.0
            gap = {"difference": own - other, "ci95": None, "relative": own / other - 1}
        return figures.Bar(
            name,
            alpha,
            found["ci95"] if found else None,
            gap["difference"] if gap else None,
            gap["ci95"] if gap else None,
            gap["relative"] if gap else None,
            done,
        )


def run(
    host: ModelHost,
    session: LabSession,
    documents: Sequence[Document],
    kind: Kind,
    names: Sequence[str],
    skipped: Sequence[Skipped] = (),
    visitor: str | None = None,
) -> Iterator[View]:
    """Views of one measurement, the last one with `running` false.

    Raises SidecarError for bad input and when nothing at all could be measured.
    """
    with host.watch.open("alpha") as watched:
        if kind == "conditions":
            names = check_names(names)
        with open_turn(host, session, watched, visitor) as turn:
            lab = session.latest = Measurement(kind, tuple(names), len(documents), list(skipped))
            try:
                line = status("The models get ready.", "busy")
                yield View(line, lab.figure(running=True), True)
                with in_words("alpha"):
                    yield from _measured(turn, session, documents, lab)
                line = status(turn.ending(STAYS) or _ending(lab), "done")
                yield View(line, lab.figure(running=False), False)
            except SidecarError as error:
                yield View(status(str(error), "error"), lab.figure(running=False), False)
                raise


def _measured(
    turn: Turn, session: LabSession, documents: Sequence[Document], lab: Measurement
) -> Iterator[View]:
    from sidecar_core.experiments.alpha.measure import measure  # here: it comes with PyTorch

    views, charts = Pace(UPDATES_PER_SECOND), Pace(CHARTS_PER_SECOND)
    for number, document in enumerate(documents):
        for line in turn.let_others_pass() if number else turn.wait():
            yield View(line, None, True)
        if turn.engine is None:
            return
        turn.begin()
        lab.about = _about(turn.engine)
        conditions = _conditions(turn.engine, lab)
        items = take(
            turn.engine,
            measure,
            [document],
            conditions,
            max_tokens=MAX_TOKENS,
            gamma=GAMMA,
            records=session.records,
            stop=turn.limit,
            seconds=lab_seconds(document.text, len(conditions)),
        )
        with contextlib.closing(items):  # before the place at the models is given up
            for item in items:
                lab.add(item)
                if views.due():
                    figure = lab.figure(running=True) if charts.due() else None
                    yield View(lab.status(), figure, True)


def _conditions(engine: Any, lab: Measurement) -> tuple[Condition, ...]:
    if lab.kind == "lengths":
        return sweep_conditions(LENGTHS)
    return choose(lab.names, engine, HASHTAGS)


def _about(engine: Any) -> dict[str, Any]:
    pair = engine.pair
    return {
        "pair": pair.name,
        "models": {"target": pair.target.name, "draft": pair.draft.name},
        "precision": pair.target.precision,
        "device": getattr(engine, "device", str(pair.target.device)),
        "suffix_tokens": len(engine.prompts.plain(HASHTAGS.suffix)),
        "settings": {"task": HASHTAGS.name, "max_tokens": MAX_TOKENS, "gamma": GAMMA},
    }


def _ending(lab: Measurement) -> str:
    """How a whole measurement ended. Raises SidecarError where it came to nothing."""
    if not lab.results:
        why = lab.skipped[-1].why if lab.skipped else "no article came back"
        raise SidecarError(f"Nothing could be measured: {why}")
    count = len(lab.results)
    words = f"Done: {count} article{'s' if count != 1 else ''}"
    words += f", {sum(result.positions for result in lab.results):,} positions"
    return words + (f"; {len(lab.skipped)} skipped." if lab.skipped else ".")
