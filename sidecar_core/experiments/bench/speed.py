"""How fast a pair decodes, side by side with transformers and llama.cpp, in one process.

Times on shared machines wander, so every figure is a ratio of runs that followed each other, and of
those the median over the repeats. All contestants get the same weights, prompt, number of tokens
and threads, decode greedily, and may not end early. What is timed is decoding behind the prompt:
for transformers the time of the whole call less that of a call for two tokens (which reads the
prompt with both models), for llama.cpp what it tells, for ours the summary phase with its events,
overlaps and α.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import psutil
import torch
from transformers import PreTrainedModel

from sidecar_core.decoding.engine import Engine
from sidecar_core.events import PhaseChanged, TokenAccepted, TokenBonus, TokenCorrected
from sidecar_core.experiments.bench.llama_cpp import LlamaCpp
from sidecar_core.installed import ASSETS
from sidecar_core.models.pair import Pair
from sidecar_core.report import RunReport
from sidecar_core.settings import COMPARED_GAMMA, RunSettings

SHORT = 2
"""Tokens of the call that is taken off: prompt read by both models, nothing else."""

ARTICLE = ASSETS / "examples" / "night-train.txt"
"""400 words; with the prompt around them about as long as the posts' mean prompt."""


@dataclass(frozen=True, slots=True)
class Timing:
    """One contestant's decoding: tokens behind the prompt, seconds, and on which article."""

    tokens: int
    seconds: float
    article: str = ""

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds


@dataclass(slots=True)
class Bench:
    """Timings by contestant, one for each repeat and article, and the single measurements.

    `prompt` holds the seconds in which a contestant's models read the prompt, nothing kept.
    """

    timings: dict[str, list[Timing]] = field(default_factory=dict)
    first_token: dict[str, list[float]] = field(default_factory=dict)
    prompt: dict[str, list[float]] = field(default_factory=dict)
    overhead: list[float] = field(default_factory=list)
    overlap: list[float] = field(default_factory=list)
    alpha: dict[str, float | None] = field(default_factory=dict)
    passes: dict[str, dict[str, float]] = field(default_factory=dict)
    rss_bytes: int = 0
    cache_bytes: dict[str, int] = field(default_factory=dict)

    def median(self, name: str) -> float:
        return statistics.median(t.tokens_per_second for t in self.timings[name])

    def ratio(self, name: str, other: str, article: str | None = None) -> float | None:
        """Median of the ratios within each repeat, over one article or all of them, or None where
        one did not run."""
        if name not in self.timings or other not in self.timings:
            return None
        pairs = zip(self.timings[name], self.timings[other], strict=True)
        return statistics.median(
            a.tokens_per_second / b.tokens_per_second
            for a, b in pairs
            if article in (None, a.article)
        )

    def by_article(self, name: str, other: str) -> dict[str, float | None]:
        """The ratio on each article."""
        articles = dict.fromkeys(timing.article for timing in self.timings.get(name, ()))
        return {article: self.ratio(name, other, article) for article in articles}

    def as_dict(self) -> dict[str, Any]:
        return {
            "tokens_per_second": {name: self.median(name) for name in self.timings},
            "ratios": {
                "fp32_vs_assisted": self.ratio("fp32", "transformers_assisted"),
                "auto_vs_assisted": self.ratio("auto", "transformers_assisted"),
                "auto_vs_transformers": self.ratio("auto", "transformers"),
                "speculative_vs_plain": self.ratio("auto", "auto_plain"),
                "auto_vs_llama_cpp": self.ratio("auto", "llama_cpp"),
                "auto_vs_llama_cpp_draft": self.ratio("auto", "llama_cpp_draft"),
            },
            "speculative_vs_plain_by_article": self.by_article("auto", "auto_plain"),
            "prompt_seconds": {
                name: statistics.median(values) for name, values in self.prompt.items()
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
    """The contestants of one process: our engine in two precisions, transformers on plain weights,
    llama.cpp.

    `plain` is (target, draft) as transformers itself loads them, or None to leave it out; `peers`
    are contestants of llama.cpp by name; `articles` are texts by name.
    """

    def __init__(
        self,
        fp32: Pair | None,
        auto: Pair,
        plain: tuple[PreTrainedModel, PreTrainedModel] | None,
        *,
        tokens: int,
        articles: Mapping[str, str] | None = None,
        peers: Mapping[str, LlamaCpp] | None = None,
    ) -> None:
        self.engines = {"auto": Engine(auto)} | ({"fp32": Engine(fp32)} if fp32 else {})
        self.plain, self.tokens, self.peers = plain, tokens, peers or {}
        self.articles = articles or {ARTICLE.stem: ARTICLE.read_text(encoding="utf-8")}
        self.article, self.text = next(iter(self.articles.items()))
        for engine in self.engines.values():
            engine.stop_ids = frozenset()  # nobody may end early
        self.settings = RunSettings(max_tokens=tokens)
        self.bench = Bench()

    def repeats(self, count: int) -> Iterator[str]:
        """Run everything `count` times; yields what comes next."""
        rounds = [(n, article) for n in range(1, count + 1) for article in self.articles]
        for n, article in rounds:
            self.article, self.text = article, self.articles[article]
            for name, contestant in self._contestants().items():
                yield f"{name}, {article}, {n} of {count}"
                timing = dataclasses.replace(contestant(), article=article)
                self.bench.timings.setdefault(name, []).append(timing)
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
        for name, peer in self.peers.items():
            found[name] = functools.partial(self._llama_cpp, name, peer)
        return found

    def _llama_cpp(self, name: str, peer: LlamaCpp) -> Timing:
        """Decoding behind a prompt that is read beforehand, as ours is."""
        ids = self._prompt()
        cold = peer.complete(ids, 1)
        if cold.prompt_tokens > len(ids) // 2:  # else its beginning was kept
            self.bench.prompt.setdefault(name, []).append(cold.prompt_seconds)
        done = peer.complete(ids, self.tokens)
        return Timing(done.tokens, done.seconds)

    def _prompt(self) -> tuple[int, ...]:
        engine = next(iter(self.engines.values()))
        return engine.build_prompts(self.text, self.settings).target.ids

    def _generate(self, count: int, **options: Any) -> float:
        assert self.plain is not None
        prompt = self._prompt()
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
        if first_token and self.article == next(iter(self.articles)):
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
        """A run's report, stopped behind the summary."""
        report = RunReport()
        for event in engine.stream(self.text, settings, lambda: report.summary is not None):
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
            if isinstance(event, PhaseChanged) and event.phase == "summary" and kind == "cold":
                self.bench.prompt.setdefault("auto", []).append(time.perf_counter() - start)
        self.bench.first_token.setdefault(kind, []).append(time.perf_counter() - start)
        stream.close()
        gc.collect()

    def _measure_caches(self) -> None:
        """Bytes that each tagger's last token attends to, with and without document masking."""
        engine = self.engines["auto"]
        for masked in (True, False):
            settings = RunSettings(max_tokens=16, document_masking=masked)
            report = RunReport.of(engine.stream(self.text, settings))
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
    head = f"{'tokens/s':>10}{'× plain':>9}{'α':>8}{'target pass':>14}{'draft pass':>13}"
    lines = [f"{'':24}{head}"]
    for name in bench.timings:
        passes = bench.passes.get(name)
        ratio = bench.ratio(name, "auto_plain")
        alpha = bench.alpha.get(name)
        lines.append(
            f"{name:24}{bench.median(name):10.2f}"
            + (f"{ratio:9.2f}" if ratio is not None else f"{'–':>9}")
            + (f"{alpha:8.3f}" if alpha is not None else f"{'–':>8}")
            + (f"{passes['target_ms']:11.0f} ms{passes['draft_ms']:10.0f} ms" if passes else "")
        )
    result = bench.as_dict()
    first = result["first_token_seconds"]
    each = result["speculative_vs_plain_by_article"].items()
    lines += [
        "",
        "auto to auto_plain: " + ", ".join(f"{article} {ratio:.2f}" for article, ratio in each),
        "prompt read, both models but for llama_cpp: "
        + ", ".join(f"{name} {s:.1f} s" for name, s in result["prompt_seconds"].items()),
        f"first token: {first['cold']:.2f} s cold, {first['warm']:.2f} s warm "
        f"({first['warm'] / first['cold']:.1%})",
        f"beside the passes: engine {result['overhead']:.2%}, overlaps "
        f"{result['overlap_share']:.2%} of decoding",
        "tagger caches: "
        + ", ".join(f"{name} {size / 1e6:.2f} MB" for name, size in bench.cache_bytes.items()),
        f"resident memory after a run of auto alone: {bench.rss_bytes / 1e9:.2f} GB",
    ]
    return "\n".join(lines)
