"""What this machine does with a model, measured once and kept in the cache folder.

Three decisions follow from it, and so from nothing that changes between runs: how many tokens of a
prompt are read at a time, how many tokens pay to be drafted, and which kernel int8 weights are
multiplied by. A clock that is read during a run would let other load on the machine decide, and the
same question would get another run.

It also holds whether rows depend on each other here (see `kernels`): if they do, on some machine
that nobody has tried, verification takes one row after another, which is slow and exact.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from sidecar_core.events import LoadProgress
from sidecar_core.models.cache import Progress, cache_dir, storage_errors, write_text
from sidecar_core.models.kernels.int8 import Kernel, kernels, use_kernel
from sidecar_core.models.kernels.kind import BLOCK, Kind, pass_kind

if TYPE_CHECKING:
    from transformers import PreTrainedModel

FORMAT = 3
"""Goes up whenever what is measured changes; older files are then measured again."""

ROWS = (1, 2, 3, 4, 5, 6, 8)
"""Rows of the passes that are timed."""

PAST = 128
"""Columns in the cache behind which they are timed."""

SWEEPS = (3, 12)
"""Each is timed so often at least and at most, in turn with the others; the shortest counts, since
the longer ones waited for other work on the machine."""

NOISE = 1.15
"""The shortest counts once another time of the same pass was at most so many times as long."""

MARGIN = 1.25
"""Another int8 kernel is taken than "integer", whose passes of several rows cost the least, where
that one takes so many times as long."""

CHUNK_SECONDS = 0.4
"""A Stop waits for the chunk under way, which should take no longer on a machine that is idle."""

CHUNKS = (32, 64, 128, 256, 512, 1024)
"""Tokens of a prefill pass; multiples of `BLOCK`."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """`seconds` of decoding passes by rows (as listed in `rows`), tokens of a prefill pass,
    whether the rows of a pass are computed as if each were alone, and the kernel of int8 weights
    ("" for other weights)."""

    rows: tuple[int, ...] = ROWS
    seconds: tuple[float, ...] = (1.0, 1.1, 1.2, 1.3, 1.5, 1.7, 2.1)
    chunk: int = 64
    rows_alike: bool = True
    kernel: Kernel | Literal[""] = ""

    def pass_seconds(self, rows: int) -> float:
        """Seconds of a decoding pass of `rows` rows: a straight line between what was timed, and
        beyond it."""
        points = list(zip(self.rows, self.seconds, strict=True))
        (low, first), (high, last) = next(
            ((a, b) for a, b in pairwise(points) if b[0] >= rows), (points[-2], points[-1])
        )
        return first + (last - first) * (rows - low) / (high - low)


UNKNOWN = Calibration()
"""For a model that nobody has timed: only the ratios mean anything."""


def calibration_of(
    network: PreTrainedModel, name: str, fingerprint: str, device: torch.device, progress: Progress
) -> Calibration:
    """The kept calibration of these weights on this machine, else a new one, which is then kept.

    `network` is ready to run (see `loading`) and takes the calibration's kernel. Raises
    SidecarError where the calibration cannot be kept.
    """
    path = _path(fingerprint, device)
    found = _read(path)
    if found is None or found.kernel not in (kernels(network) or ("",)):
        progress(LoadProgress(f"Timing {name} on this machine (once)"))
        found = measure(network, device)
        with storage_errors("Keeping a calibration"):
            write_text(path, json.dumps({"format": FORMAT, **dataclasses.asdict(found)}, indent=1))
    if found.kernel:
        use_kernel(network, found.kernel)
    return found


@torch.inference_mode()
def measure(network: PreTrainedModel, device: torch.device) -> Calibration:
    """Time passes of `network` behind `PAST` columns of arbitrary tokens, with each kernel that it
    can take; gives the best."""
    found = []
    for kernel in kernels(network):
        use_kernel(network, kernel)
        found.append(_measured(network, device, kernel))
    if not found:
        return _measured(network, device, "")
    return min(found, key=lambda c: sum(c.seconds) * (1 if c.kernel == "integer" else MARGIN))


def _measured(
    network: PreTrainedModel, device: torch.device, kernel: Kernel | Literal[""]
) -> Calibration:
    probe = _Probe(network, device)
    reading = probe.fill()
    wide = probe.read(4 * BLOCK)
    probe.forget(4 * BLOCK)
    sweeps: list[list[float]] = []
    while len(sweeps) < SWEEPS[0] or (len(sweeps) < SWEEPS[1] and _noisy(sweeps)):
        sweeps.append(probe.sweep())
    alike = probe.rows_alike(max(ROWS))
    return Calibration(ROWS, _shortest(sweeps), _chunk(reading, wide), alike, kernel)


@torch.inference_mode()
def time_passes(
    network: PreTrainedModel, device: torch.device, sweeps: int
) -> list[tuple[float, ...]]:
    """Seconds of decoding passes by `ROWS`, behind `PAST` columns, measured now: a tuple for each
    sweep."""
    probe = _Probe(network, device)
    probe.fill()
    probe.sweep()  # warms up
    return [tuple(probe.sweep()) for _ in range(sweeps)]


def _noisy(sweeps: Sequence[Sequence[float]]) -> bool:
    """Whether the shortest time of some pass was seen only once."""
    first_two = [sorted(times)[:2] for times in zip(*sweeps, strict=True)]
    return any(second > NOISE * first for first, second in first_two)


def _shortest(sweeps: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """The shortest time of each pass, and none longer than that of a pass of more rows.

    >>> _shortest([[3.0, 2.0, 5.0], [4.0, 2.5, 4.0]])
    (2.0, 2.0, 4.0)
    """
    times = [min(column) for column in zip(*sweeps, strict=True)]
    return tuple(min(times[place:]) for place in range(len(times)))


def _chunk(narrow: float, wide: float) -> int:
    """The most tokens that are read in CHUNK_SECONDS, given the seconds of BLOCK and of 4 BLOCK."""
    slope = max(wide - narrow, 0.0) / (3 * BLOCK)
    fits = [n for n in CHUNKS if narrow + slope * (n - BLOCK) <= CHUNK_SECONDS]
    return max(fits, default=CHUNKS[0])


class _Probe:
    """A network, a cache, and arbitrary tokens: the same ones each time."""

    def __init__(self, network: PreTrainedModel, device: torch.device) -> None:
        from transformers import DynamicCache

        self.network, self.device = network, device
        self.cache: Any = DynamicCache()
        self.past = 0

    def read(self, rows: int) -> float:
        """Append `rows` columns; the seconds that took."""
        start = time.perf_counter()
        self._run(self._tokens(rows), "read", 1)
        return time.perf_counter() - start

    def fill(self) -> float:
        """Append `PAST` columns; the seconds that `BLOCK` of them took at best."""
        reading = min(self.read(BLOCK), self.read(BLOCK))  # the first one warms up
        while self.past < PAST:
            reading = min(reading, self.read(BLOCK))
        return reading

    def sweep(self) -> list[float]:
        """Seconds of one decoding pass of each number of `ROWS`."""
        return [self.decode(rows)[1] for rows in ROWS]

    def decode(self, rows: int) -> tuple[torch.Tensor, float]:
        """Logits [rows, vocabulary] of a decoding pass, which leaves nothing in the cache, and its
        seconds."""
        start = time.perf_counter()
        logits = self._run(self._tokens(rows), "decode", rows)
        seconds = time.perf_counter() - start
        self.forget(rows)
        return logits, seconds

    def rows_alike(self, most: int) -> bool:
        """Whether passes of one row give the numbers of passes of several, bit for bit."""
        tokens = self._tokens(most)
        alone = torch.cat([self._run([token], "decode", 1) for token in tokens])
        self.forget(most)
        return all(torch.equal(self.decode(rows)[0], alone[:rows]) for rows in (2, 3, 4, 5, most))

    def forget(self, columns: int) -> None:
        self.cache.crop(-columns)
        self.past -= columns

    def _tokens(self, count: int) -> list[int]:
        width = int(self.network.config.get_text_config().vocab_size)
        return [(self.past + place) * 7919 % width for place in range(count)]

    def _run(self, tokens: Sequence[int], kind: Kind, rows: int) -> torch.Tensor:
        count = len(tokens)
        mask = torch.ones(count, self.past + count, dtype=torch.bool, device=self.device)
        with pass_kind(kind):
            logits: torch.Tensor = self.network(
                input_ids=torch.tensor([tokens], device=self.device),
                position_ids=torch.arange(self.past, self.past + count, device=self.device)[None],
                attention_mask=mask.tril(self.past)[None, None] if count > 1 else None,
                cache=self.cache,
                use_cache=True,
                logits_to_keep=rows,
            ).logits[0]
        float(logits.sum())  # waits for a GPU
        self.past += count
        return logits


def _read(path: Path) -> Calibration | None:
    """What was kept, or None where there is nothing usable."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept.pop("format") != FORMAT:
            return None
        found = Calibration(
            rows=tuple(int(n) for n in kept["rows"]),
            seconds=tuple(float(s) for s in kept["seconds"]),
            chunk=int(kept["chunk"]),
            rows_alike=kept["rows_alike"] is True,
            kernel=kept["kernel"],
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    sound = (
        found.rows == ROWS
        and len(found.seconds) == len(ROWS)
        and all(0 < s < 1e4 for s in found.seconds)
        and found.chunk in CHUNKS
    )
    return found if sound else None


def _path(fingerprint: str, device: torch.device) -> Path:
    return cache_dir() / "calibrations" / f"{fingerprint}-{machine(device)}.json"


def machine(device: torch.device, cpu_name: Callable[[], str] | None = None) -> str:
    """Names what the numbers depend on: processor or GPU, threads, and the build of torch."""
    name = (
        (cpu_name or _cpu_name)()
        if device.type == "cpu"
        else torch.cuda.get_device_name(device)
        if device.type == "cuda"
        else device.type
    )
    parts = [name, torch.__version__, torch.get_num_threads()]
    parts.append(torch.backends.cpu.get_cpu_capability())
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else f"{platform.machine()} {platform.processor()}"
