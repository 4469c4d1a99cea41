"""The cost model: what a decode step of the tagger reads, and what a million tag lists cost.

A decode step reads the weights once and the cache of every request in the batch, and on the usual
machines reading is what takes the time. So a step takes (weights + batch × cache) / bandwidth, and
leaving the document's columns out saves what they are of that. Pure arithmetic: no model is loaded.
`LEAVES_OUT` says what the model does not count.

Prices per million tag lists. The sidecar's: its suffix and cue are read, then one step for each
token, shared by the batch, on a machine that is rented for the summaries anyway. The standalone's:
its own prompt is read as well, its machine (which may be another one, with a batch of its own) is
paid for while it is idle too, and each list crosses the network. A million articles cost what the
share of them that wants tags costs. The time of one list is that of reading, of its steps in a full
batch, and for the standalone of the hop there and back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sidecar_core.errors import SidecarError
from sidecar_core.experiments.cost.devices import DEVICES, Device, Footprint
from sidecar_core.report import RunReport

BATCHES = (1, 16, 32, 64, 128)

UTILISATION = 0.5
"""Share of a machine's peak rate that reading a prompt reaches."""

LEAVES_OUT = (
    "compute: a decode step is assumed to be memory-bound, which fails at large batches (on a CPU, "
    "at small ones)",
    "attention's own arithmetic, activations and the launch of kernels",
    "caches that grow while tags are written: their length is that of the last token",
    "memory that a smaller cache frees for larger batches",
    "delays that tagging causes to summaries on the same machine",
)
"""What the model does not count."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens of one request: cache columns while tagging with the document, without it, and in the
    standalone's own cache; tokens read before the first tag; tags' tokens."""

    full: int = 628
    masked: int = 129
    standalone: int = 130
    sidecar_read: int = 30
    standalone_read: int = 110
    tags: int = 20

    def validate(self) -> Lengths:
        """Itself, or SidecarError."""
        for name, value in dataclasses.asdict(self).items():
            if not 0 <= value <= 10_000_000:
                raise SidecarError(f"{name} is {value}; it must be from 0 to 10,000,000 tokens.")
        if self.masked > self.full:
            raise SidecarError(
                f"{self.masked} tokens without the document are more than the {self.full} with it; "
                "give the columns that are left under document masking."
            )
        return self

    @classmethod
    def of_run(cls, report: RunReport) -> Lengths:
        """Those of a finished run with both taggers. Raises SidecarError for another."""
        sidecar, standalone = (report.taggers[t].finished for t in ("sidecar", "standalone"))
        if report.started is None or sidecar is None or standalone is None:
            raise SidecarError("This run has no tags of both taggers; use a finished one.")
        document = dict(report.started.segments).get("document")
        masking = report.started.settings.get("document_masking")
        if document is None or masking is None:
            raise SidecarError("This run does not say how long its document was; use another.")
        full = sidecar.kv_tokens + (document if masking else 0)
        return cls(
            full=full,
            masked=full - document,
            standalone=standalone.kv_tokens,
            sidecar_read=sidecar.prefill_tokens,
            standalone_read=standalone.prefill_tokens,
            tags=standalone.kv_tokens - standalone.prefill_tokens + 1,
        )


@dataclass(frozen=True, slots=True)
class CostSetup:
    """Everything a cost depends on. `idle` is the share of its time in which the standalone's
    machine waits, `network` US dollars for carrying a million lists there and back (by default
    4 kB each at 0.09 a GB), `worth` the speed-up from which masking is said to pay, `share` how
    much of the traffic wants tags, `hop` the seconds to the standalone's machine and back;
    `standalone_batch` is None where it is the sidecar's."""

    footprint: Footprint
    device: Device = DEVICES["A100"]
    lengths: Lengths = Lengths()
    standalone_device: Device | None = None
    idle: float = 0.3
    network: float = 0.36
    worth: float = 0.05
    standalone_batch: int | None = None
    share: float = 1.0
    hop: float = 0.0

    def validate(self) -> CostSetup:
        """Itself, or SidecarError."""
        self.lengths.validate()
        if not 0 <= self.idle < 1:
            raise SidecarError(f"The idle share is {self.idle:g}; it must be from 0 to below 1.")
        if not 0 <= self.network <= 1e6 or not 0 < self.worth <= 10:
            raise SidecarError("Network price and worthwhile speed-up must be positive numbers.")
        if not 0 < self.share <= 1:
            raise SidecarError(f"The share is {self.share:g}; it must be above 0 and at most 1.")
        if not 0 <= self.hop <= 60:
            raise SidecarError(f"The hop takes {self.hop:g} s; it must be from 0 to 60 seconds.")
        if self.standalone_batch is not None:
            check_batches([self.standalone_batch])
        for device in (self.device, self.standalone_device or self.device):
            if not 0 <= device.rent <= 1e6:
                raise SidecarError(f"The rent is {device.rent:g}; it must be from 0 to 1,000,000.")
        return self


@dataclass(frozen=True, slots=True)
class CostRow:
    """One batch size: bytes and seconds of a decode step; prices of a million lists, and of a
    million generated tokens (decode steps only); seconds that one list takes."""

    batch: int
    full_bytes: float
    masked_bytes: float
    full_seconds: float
    masked_seconds: float
    speedup: float
    attended_price: float
    sidecar_price: float
    standalone_price: float
    sidecar_token_price: float
    standalone_token_price: float
    sidecar_seconds: float
    standalone_seconds: float


def check_batches(batches: Sequence[int]) -> None:
    """SidecarError for none, or one out of range."""
    if not batches or not all(1 <= batch <= 100_000 for batch in batches):
        raise SidecarError("Batch sizes must be whole numbers from 1 to 100,000.")


def rows(scenario: CostSetup, batches: Sequence[int] = BATCHES) -> list[CostRow]:
    """The table. Raises SidecarError for impossible lengths, shares or batches."""
    scenario.validate()
    check_batches(batches)
    return [_row(scenario, batch) for batch in batches]


def _row(scenario: CostSetup, batch: int) -> CostRow:
    device, lengths, footprint = scenario.device, scenario.lengths, scenario.footprint
    apart = scenario.standalone_device or device
    own_batch = scenario.standalone_batch or batch
    full = step_bytes(footprint, lengths.full, batch)
    masked = step_bytes(footprint, lengths.masked, batch)
    alone = step_bytes(footprint, lengths.standalone, own_batch)

    def reading(machine: Device, tokens: int) -> float:
        return 2 * footprint.parameters * tokens / (machine.flops * UTILISATION)

    def price(machine: Device, tokens: int, step: float, of: int) -> float:
        writing = lengths.tags * step / machine.bandwidth / of
        return (reading(machine, tokens) + writing) * machine.rent / 3600 * 1e6

    def token_price(machine: Device, step: float, of: int) -> float:
        return step / machine.bandwidth / of * machine.rent / 3600 * 1e6

    def seconds(machine: Device, tokens: int, step: float) -> float:
        return reading(machine, tokens) + lengths.tags * step / machine.bandwidth

    busy = 1 - scenario.idle
    return CostRow(
        batch=batch,
        full_bytes=full,
        masked_bytes=masked,
        full_seconds=full / device.bandwidth,
        masked_seconds=masked / device.bandwidth,
        speedup=full / masked - 1,
        attended_price=price(device, lengths.sidecar_read, full, batch),
        sidecar_price=price(device, lengths.sidecar_read, masked, batch),
        standalone_price=price(apart, lengths.standalone_read, alone, own_batch) / busy
        + scenario.network,
        sidecar_token_price=token_price(device, masked, batch),
        standalone_token_price=token_price(apart, alone, own_batch),
        sidecar_seconds=seconds(device, lengths.sidecar_read, masked),
        standalone_seconds=seconds(apart, lengths.standalone_read, alone) + scenario.hop,
    )


def step_bytes(footprint: Footprint, columns: int, batch: int) -> float:
    """Bytes that one decode step of `batch` requests with `columns` cached tokens each reads."""
    return footprint.weights + batch * columns * footprint.column


def pays_from(scenario: CostSetup) -> int | None:
    """The smallest batch at which masking speeds a step up by `worth`; None: at no batch.

    (W + B·F) / (W + B·M) ≥ 1 + worth, solved for B.
    """
    column, lengths = scenario.footprint.column, scenario.lengths
    gain = column * (lengths.full - (1 + scenario.worth) * lengths.masked)
    if gain <= 0:
        return None
    batch = scenario.worth * scenario.footprint.weights / gain
    return max(1, int(-(-batch // 1)))


PART3 = CostSetup(
    footprint=Footprint("Qwen2.5-1.5B-Instruct", "bf16", 1_543_714_304, 3.09e9, 28_672),
    device=dataclasses.replace(DEVICES["A100"], bandwidth=2e12),
    lengths=Lengths(full=628, masked=129),
)
"""The posts' example: 3.09 GB of weights, 18 MB of cache with the document, 3.7 MB without."""


def as_dict(scenario: CostSetup, table: Sequence[CostRow]) -> dict[str, Any]:
    """The result object of `cost --json`."""
    footprint, device = scenario.footprint, scenario.device
    return {
        "tagger": {
            "name": footprint.name,
            "precision": footprint.precision,
            "parameters": footprint.parameters,
            "weights_bytes": footprint.weights,
            "cache_bytes_per_token": footprint.column,
        },
        "device": dataclasses.asdict(device),
        "standalone_device": dataclasses.asdict(scenario.standalone_device or device),
        "tokens": dataclasses.asdict(scenario.lengths),
        "idle_share": scenario.idle,
        "network_usd_per_million": scenario.network,
        "standalone_batch": scenario.standalone_batch,
        "share_with_tags": scenario.share,
        "hop_seconds": scenario.hop,
        "rows": [
            {
                "batch": row.batch,
                "full_bytes": row.full_bytes,
                "masked_bytes": row.masked_bytes,
                "full_seconds": row.full_seconds,
                "masked_seconds": row.masked_seconds,
                "speedup": row.speedup,
                "speedup_percent": 100 * row.speedup,
                "usd_per_million": {
                    "sidecar": row.sidecar_price,
                    "sidecar_with_document": row.attended_price,
                    "standalone": row.standalone_price,
                },
                "usd_per_million_articles": {
                    "sidecar": scenario.share * row.sidecar_price,
                    "standalone": scenario.share * row.standalone_price,
                },
                "usd_per_million_tokens": {
                    "sidecar": row.sidecar_token_price,
                    "standalone": row.standalone_token_price,
                },
                "seconds_per_list": {
                    "sidecar": row.sidecar_seconds,
                    "standalone": row.standalone_seconds,
                },
            }
            for row in table
        ],
        "worth": scenario.worth,
        "pays_from_batch": pays_from(scenario),
        "leaves_out": list(LEAVES_OUT),
    }
