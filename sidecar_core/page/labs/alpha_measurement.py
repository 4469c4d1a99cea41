"""A measurement of the α lab: articles under several conditions, or with several suffix lengths."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Literal

from sidecar_core.errors import SidecarError
from sidecar_core.experiments.alpha.conditions import Condition, check_names, choose
from sidecar_core.experiments.alpha.pooling import BASELINE, pool
from sidecar_core.experiments.alpha.published import as_dict
from sidecar_core.experiments.alpha.sweep import LENGTHS, pool_sweep, sweep_conditions
from sidecar_core.experiments.alpha.tables import alpha_csv, sweep_csv
from sidecar_core.experiments.corpus import Document, Skipped
from sidecar_core.experiments.readings import MAX_TOKENS, DocumentAlpha, Step
from sidecar_core.experiments.records import InMemory
from sidecar_core.host.monitor import Kind
from sidecar_core.host.zero_gpu import lab_seconds, take
from sidecar_core.page.labs.lab_run import LabSession, Pause
from sidecar_core.settings import COMPARED_GAMMA
from sidecar_core.tasks import HASHTAGS
from sidecar_core.view.labs import alpha_results
from sidecar_core.view.labs.alpha_results import ConditionBar
from sidecar_core.view.render import status

Compared = Literal["conditions", "lengths"]


@dataclass(slots=True)
class AlphaMeasurement:
    """Fold of `measure`'s items. `compared` says whether `names` of conditions are compared, or
    suffix lengths; `skipped` are articles that cannot be measured."""

    compared: Compared
    names: tuple[str, ...]
    documents: tuple[Document, ...]
    skipped: list[Skipped] = field(default_factory=list)
    records: InMemory = field(default_factory=InMemory)
    results: list[DocumentAlpha] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)
    step: Step | None = None
    failed: int = 0
    kind: Kind = "alpha"
    _partial: dict[str, Step] = field(default_factory=dict)
    _pooled: dict[str, Any] | None = None

    def check(self) -> None:
        if self.compared == "conditions":
            self.names = check_names(self.names)

    def work(self, engine: Any, stop: Callable[[], bool]) -> Generator[Any, None, None]:
        from sidecar_core.experiments.alpha.measure import measure  # here: it imports PyTorch

        self.about = _about(engine)
        conditions = self._conditions(engine)
        for number, document in enumerate(self.documents):
            if number:
                yield Pause.LET_OTHERS_PASS
            yield from take(
                engine,
                measure,
                [document],
                conditions,
                max_tokens=MAX_TOKENS,
                gamma=COMPARED_GAMMA,
                records=self.records,
                stop=stop,
                seconds=lab_seconds(len(document.text), len(conditions)),
            )

    def _conditions(self, engine: Any) -> tuple[Condition, ...]:
        if self.compared == "lengths":
            return sweep_conditions(LENGTHS)
        return choose(self.names, engine, HASHTAGS)

    def add(self, item: Step | DocumentAlpha | Skipped) -> None:
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
        """The finished articles, pooled as on the command line. Other threads may call this while
        the measurement continues."""
        results, found = list(self.results), self._pooled
        if found is None or found["documents"] != len(results):
            if self.compared == "conditions":
                found = pool(results, gamma=COMPARED_GAMMA, max_tokens=MAX_TOKENS)
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
        return alpha_csv(result) if self.compared == "conditions" else sweep_csv(result)

    def status(self) -> dict[str, str]:
        finished, total = len(self.results) + self.failed, len(self.documents)
        stage = self.step.stage if self.step else "preparing the models"
        if total > 1:
            line = f"Article {finished + 1} of {total}: {stage}."
            return status(line, "busy", finished / total)
        within = self.step.done / self.step.total if self.step and self.step.total else 0.0
        return status(f"{stage[0].upper()}{stage[1:]}.", "busy", within)

    def result(self, *, running: bool) -> str:
        """Bars or the line of costs; all figures once the first article is done."""
        skipped = alpha_results.skipped_list(self.skipped)
        result = self.pooled() if self.results else None
        if self.compared == "lengths":
            if result is None:
                return '<p class="quiet">The line appears after the first article.</p>' + skipped
            lengths = result["lengths"]
            return alpha_results.cost_chart(lengths) + alpha_results.cost_table(lengths) + skipped
        drawn = alpha_results.bars([self._bar(name, result, running) for name in self.names])
        if result is None:
            return drawn + skipped
        return alpha_results.verdict(result) + drawn + alpha_results.tables(result) + skipped

    def _bar(self, name: str, result: dict[str, Any] | None, running: bool) -> ConditionBar:
        """One condition: pooled over the finished articles; α includes the current article."""
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
        return ConditionBar(
            name,
            alpha,
            found["ci95"] if found else None,
            gap["difference"] if gap else None,
            gap["ci95"] if gap else None,
            gap["relative"] if gap else None,
            done,
        )

    def conclusion(self) -> str:
        if not self.results:
            why = self.skipped[-1].why if self.skipped else "no article was returned"
            raise SidecarError(f"Nothing could be measured: {why}")
        count = len(self.results)
        words = f"Done: {count} article{'s' if count != 1 else ''}"
        words += f", {sum(result.positions for result in self.results):,} positions"
        return words + (f"; {len(self.skipped)} skipped." if self.skipped else ".")


class AlphaLabSession(LabSession[AlphaMeasurement]):
    """State of one browser tab's α lab; `documents` and `skipped` are those of an upload."""

    def __init__(self) -> None:
        super().__init__()
        self.documents: tuple[Document, ...] = ()
        self.skipped: tuple[Skipped, ...] = ()


def _about(engine: Any) -> dict[str, Any]:
    pair = engine.pair
    return {
        "pair": pair.name,
        "models": {"target": pair.target.name, "draft": pair.draft.name},
        "precision": pair.target.precision,
        "device": getattr(engine, "device", str(pair.target.device)),
        "suffix_tokens": len(engine.prompts.plain(HASHTAGS.suffix)),
        "settings": {"task": HASHTAGS.name, "max_tokens": MAX_TOKENS, "gamma": COMPARED_GAMMA},
    }
