"""How fast a pair decodes, side by side with transformers, in one process.

Times on shared machines wander, so every figure is a ratio of runs that followed each other, and of
those the median over the repeats. All contestants get the same weights, prompt, number of tokens
and threads, decode greedily, and may not end early. What is timed is decoding behind the prompt:
for transformers the time of the whole call less that of a call for two tokens (which reads the
prompt with both models), for ours the summary phase with its events, overlaps and α.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import psutil
import torch
from transformers import PreTrainedModel

from sidecar_core.decoding.engine import Engine
from sidecar_core.events import TokenAccepted, TokenBonus, TokenCorrected
from sidecar_core.installed import ASSETS
from sidecar_core.models.pair import Pair
from sidecar_core.report import RunReport
from sidecar_core.settings import COMPARED_GAMMA, RunSettings

SHORT = 2
"""Tokens of the call that is taken off: prompt read by both models, nothing else."""

ARTICLE = ASSETS / "examples" / "night-train.txt"
"""400 words; with the prompt around them about as long as the reference's mean prompt."""


@dataclass(frozen=True, slots=True)
class Timing:
    """One contestant's decoding: tokens behind the prompt, and seconds."""

    tokens: int
    seconds: float

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds


@dataclass(slots=True)
class Bench:
    """Timings by contestant, one a repeat, and the single measurements."""

    timings: dict[str, list[Timing]] = field(default_factory=dict)
    first_token: dict[str, list[float]] = field(default_factory=dict)
    overhead: list[float] = field(default_factory=list)
    overlap: list[float] = field(default_factory=list)
    alpha: dict[str, float | None] = field(default_factory=dict)
    passes: dict[str, dict[str, float]] = field(default_factory=dict)
    rss_bytes: int = 0
    cache_bytes: dict[str, int] = field(default_factory=dict)

    def median(self, name: str) -> float:
        return statistics.median(t.tokens_per_second for t in self.timings[name])

    def ratio(self, name: str, other: str) -> float | None:
        """Median of the ratios within each repeat, or None where one did not run."""
        if name not in self.timings or other not in self.timings:
            return None
        pairs = zip(self.timings[name], self.timings[other], strict=True)
        return statistics.median(a.tokens_per_second / b.tokens_per_second for a, b in pairs)

    def as_dict(self) -> dict[str, Any]:
        return {
            "tokens_per_second": {name: self.median(name) for name in self.timings},
            "ratios": {
                "fp32_vs_assisted": self.ratio("fp32", "transformers_assisted"),
                "auto_vs_assisted": self.ratio("auto", "transformers_assisted"),
                "auto_vs_transformers": self.ratio("auto", "transformers"),
                "speculative_vs_plain": self.ratio("auto", "auto_plain"),
            },
            "first_token_seconds": {
                kind: statistics.median(values) for kind, values in self.first_token.items()
            },
            "overhead": statistics.median(self.overhead),
            "overlap_share": statistics.median(self.overlap),
            "alpha": self.alpha,
            "passes": self.passes,
            "cache_bytes": self.cache_bytes,
            "rss_bytes": self.rss_bytes,
        }


def resident_after_run(pair: Pair) -> int:
    """Bytes this process holds (mapped weights included) behind one whole run of `pair`."""
    for _ in Engine(pair).stream(ARTICLE.read_text(encoding="utf-8"), RunSettings(max_tokens=32)):
        pass
    return int(psutil.Process().memory_info().rss)


class Contest:
    """The contestants of one process: our engine in two precisions, transformers on plain weights.

    `plain` is (target, draft) as transformers itself loads them, or None to leave it out.
    """

    def __init__(
        self,
        fp32: Pair | None,
        auto: Pair,
        plain: tuple[PreTrainedModel, PreTrainedModel] | None,
        *,
        tokens: int,
        text: str | None = None,
    ) -> None:
        self.engines = {"auto": Engine(auto)} | ({"fp32": Engine(fp32)} if fp32 else {})
        self.plain, self.tokens = plain, tokens
        self.text = text or ARTICLE.read_text(encoding="utf-8")
        for engine in self.engines.values():
            engine.stop_ids = frozenset()  # nobody may end early
        self.settings = RunSettings(max_tokens=tokens)
        self.bench = Bench()

    def repeats(self, count: int) -> Iterator[str]:
        """Run everything `count` times; yields what comes next."""
        for repeat in range(count):
            for name, contestant in self._contestants().items():
                yield f"{name}, {repeat + 1} of {count}"
                self.bench.timings.setdefault(name, []).append(contestant())
        yield "taggers' caches"
        self._measure_caches()

    def _contestants(self) -> dict[str, Callable[[], Timing]]:
        found: dict[str, Callable[[], Timing]] = {}
        if self.plain is not None:
            found["transformers"] = self._transformers
            found["transformers_assisted"] = self._assisted
        if "fp32" in self.engines:
            found["fp32"] = lambda: self._ours("fp32", "fp32")
        found["auto"] = lambda: self._ours("auto", "auto", first_token=True)
        found["auto_fixed"] = lambda: self._ours("auto_fixed", "auto", gamma=COMPARED_GAMMA)
        found["auto_plain"] = lambda: self._ours("auto_plain", "auto", gamma=0)
        return found

    def _generate(self, count: int, **options: Any) -> float:
        assert self.plain is not None
        engine = next(iter(self.engines.values()))
        prompt = engine.build_prompts(self.text, self.settings).target.ids
        ids = torch.tensor([prompt], device=self.plain[0].device)
        start = time.perf_counter()
        made = self.plain[0].generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            min_new_tokens=count,
            max_new_tokens=count,
            pad_token_id=0,
            **options,
        )
        assert made.shape[1] == len(prompt) + count
        return time.perf_counter() - start

    def _transformers(self) -> Timing:
        seconds = self._generate(self.tokens) - self._generate(SHORT)
        return Timing(self.tokens - SHORT, seconds)

    def _assisted(self) -> Timing:
        assert self.plain is not None
        options = {"assistant_model": self.plain[1]}
        seconds = self._generate(self.tokens, **options) - self._generate(SHORT, **options)
        return Timing(self.tokens - SHORT, seconds)

    def _ours(
        self, name: str, precision: str, *, first_token: bool = False, **changes: Any
    ) -> Timing:
        engine = self.engines[precision]
        settings = RunSettings(max_tokens=self.tokens, **changes)
        if first_token:
            self._first_token("cold", engine)
            self._first_token("warm", engine)
        report = self._summary(engine, settings)
        assert report.summary is not None
        self.bench.alpha[name] = report.alpha
        timings = self.last_timings
        seconds = sum(timings[s] for s in ("target_passes", "draft_passes", "overlap", "engine"))
        if name == precision:
            self.bench.overhead.append(timings["engine"] / seconds)
            self.bench.overlap.append(timings["overlap"] / seconds)
        self.bench.passes[name] = {
            "target_ms": 1e3 * timings["target_passes"] / report.summary.target_passes,
            "draft_ms": 1e3 * timings["draft_passes"] / max(report.summary.draft_passes, 1),
            "tokens_per_pass": report.tokens_per_pass or 0.0,
        }
        return Timing(report.emitted, seconds)

    def _summary(self, engine: Engine, settings: RunSettings) -> RunReport:
        """A whole run's report; its tags are not timed."""
        report = RunReport()
        for event in engine.stream(self.text, settings):
            report.add(event)
        assert report.finished is not None
        self.last_timings = report.finished.timings
        return report

    def _first_token(self, kind: str, engine: Engine) -> None:
        """Seconds from the call to the first token of the summary."""
        if kind == "cold":
            engine.store.clear()
        start = time.perf_counter()
        stream = engine.stream(self.text, self.settings)
        for event in stream:
            if isinstance(event, TokenAccepted | TokenCorrected | TokenBonus):
                break
        self.bench.first_token.setdefault(kind, []).append(time.perf_counter() - start)
        stream.close()
        gc.collect()

    def _measure_caches(self) -> None:
        """Bytes that each tagger's last token attends to, with and without document masking."""
        engine = self.engines["auto"]
        for masked in (True, False):
            settings = RunSettings(max_tokens=16, document_masking=masked)
            report = self._summary(engine, settings)
            for tagger, state in report.taggers.items():
                assert state.finished is not None
                name = (
                    tagger
                    if tagger == "standalone"
                    else ("sidecar_masked" if masked else "sidecar_attended")
                )
                self.bench.cache_bytes[name] = state.finished.kv_bytes


def table(bench: Bench) -> str:
    """The figures as text, a contestant a line."""
    assisted = "transformers_assisted"
    lines = [
        f"{'':24}{'tokens/s':>10}{'× assisted':>12}{'α':>8}{'target pass':>14}{'draft pass':>13}"
    ]
    for name in bench.timings:
        passes = bench.passes.get(name)
        ratio = bench.ratio(name, assisted)
        alpha = bench.alpha.get(name)
        lines.append(
            f"{name:24}{bench.median(name):10.2f}"
            + (f"{ratio:12.2f}" if ratio is not None else f"{'–':>12}")
            + (f"{alpha:8.3f}" if alpha is not None else f"{'–':>8}")
            + (f"{passes['target_ms']:11.0f} ms{passes['draft_ms']:10.0f} ms" if passes else "")
        )
    result = bench.as_dict()
    first = result["first_token_seconds"]
    lines += [
        "",
        f"first token: {first['cold']:.2f} s cold, {first['warm']:.2f} s warm "
        f"({first['warm'] / first['cold']:.1%})",
        f"beside the passes: engine {result['overhead']:.2%}, overlaps "
        f"{result['overlap_share']:.2%} of decoding",
        "tagger caches: "
        + ", ".join(f"{name} {size / 1e6:.2f} MB" for name, size in bench.cache_bytes.items()),
        f"resident memory behind a run of auto alone: {bench.rss_bytes / 1e9:.2f} GB",
    ]
    return "\n".join(lines)
