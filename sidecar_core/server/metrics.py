"""The figures at /metrics: counts of runs, in Prometheus' text format.

Each app has its own registry, so that two apps in one process are counted apart. The registry holds
nothing about the process or its visitors.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

from sidecar_core import __version__
from sidecar_core.host.monitor import Ended, Kind, Outcome

CONTENT_TYPE = CONTENT_TYPE_LATEST

OUTCOMES: tuple[Outcome, ...] = ("finished", "stopped", "failed", "refused")
KINDS: tuple[Kind, ...] = ("run", "alpha", "leak")

SECONDS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
SPEEDS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
SHARES = tuple(n / 10 for n in range(1, 11))


class Metrics:
    """Observes runs. `waiting` returns how many are queued."""

    def __init__(self, waiting: Callable[[], int]) -> None:
        own = self._registry = CollectorRegistry(auto_describe=True)
        self._started = Counter(
            "sidecar_runs_started", "Runs that reached the models", ["kind"], registry=own
        )
        self._ended = Counter(
            "sidecar_runs_ended", "Runs that ended, by outcome", ["kind", "outcome"], registry=own
        )
        self._tokens = Counter("sidecar_tokens", "Tokens of summaries", registry=own)
        self._seconds = Histogram(
            "sidecar_run_seconds",
            "Seconds from click to end, queue included",
            ["kind"],
            buckets=SECONDS,
            registry=own,
        )
        self._speed = Histogram(
            "sidecar_tokens_per_second",
            "Tokens per second of each summary, without prefill",
            buckets=SPEEDS,
            registry=own,
        )
        self._alpha = Histogram(
            "sidecar_alpha",
            "Alpha (mean overlap of draft and target) of each run",
            buckets=SHARES,
            registry=own,
        )
        Gauge("sidecar_runs_waiting", "Runs in the queue", registry=own).set_function(waiting)
        Gauge("sidecar_info", "Version of the app", ["version"], registry=own).labels(
            __version__
        ).set(1)
        for kind in KINDS:  # so that rates are defined from the first run on
            self._started.labels(kind)
            for outcome in OUTCOMES:
                self._ended.labels(kind, outcome)

    def began(self, kind: Kind) -> None:
        self._started.labels(kind).inc()

    def ended(self, run: Ended) -> None:
        self._ended.labels(run.kind, run.outcome).inc()
        if run.outcome == "refused":
            return
        self._tokens.inc(run.tokens)
        self._seconds.labels(run.kind).observe(run.seconds)
        if run.tokens_per_second is not None:
            self._speed.observe(run.tokens_per_second)
        if run.alpha is not None:
            self._alpha.observe(run.alpha)

    def text(self) -> bytes:
        """All current figures."""
        return generate_latest(self._registry)
