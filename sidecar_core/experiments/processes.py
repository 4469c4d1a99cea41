"""A corpus over several processes, GPUs or machines, with Accelerate.

    accelerate launch -m sidecar_core alpha …                  one process per GPU
    torchrun --nproc-per-node 2 -m sidecar_core alpha …        two processes on CPUs

Every process loads the models and takes every n-th article; the results come back in the articles'
order, so that they are those of a single process. Processes write their records as they go: one
that is killed takes the others with it, and the next start goes on at the article it was on.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from sidecar_core.errors import SidecarError

T = TypeVar("T")

PATIENCE = timedelta(days=7)
"""How long a process that is done waits for the others."""


@dataclass(frozen=True, slots=True)
class Processes:
    """This process among `count`; `device` is the one it should use, None for its own choice."""

    index: int = 0
    count: int = 1
    device: str | None = None

    @property
    def is_first(self) -> bool:
        """Whether this is the process that shows progress and results."""
        return self.index == 0

    def share(self, items: Sequence[T]) -> list[T]:
        """What of `items` this process is to do."""
        return list(items[self.index :: self.count])

    def gather(self, results: Sequence[T]) -> list[T]:
        """The results of all processes, one for each item, in the items' order. All must call."""
        if self.count == 1:
            return list(results)
        from accelerate.utils import gather_object

        shares: dict[int, list[T]] = dict(gather_object([(self.index, list(results))]))
        whole = sum(map(len, shares.values()))
        return [shares[n % self.count][n // self.count] for n in range(whole)]


def this_process(device: str | None = None) -> Processes:
    """Where this process stands; a single one unless a launcher started several.

    `device` is what the user asked for. Raises SidecarError where the processes do not find each
    other.
    """
    launched = int(os.environ.get("WORLD_SIZE", "1"))
    if launched < 2:
        return Processes()
    import torch
    from accelerate import PartialState

    found = torch.accelerator.current_accelerator(check_available=True)
    on_cpu = (device or "").startswith("cpu") or found is None or found.type == "mps"
    state: Any = PartialState(cpu=on_cpu, timeout=PATIENCE)
    if state.num_processes != launched:
        raise SidecarError(
            f"The launcher started {launched} processes, of which Accelerate finds "
            f"{state.num_processes}; start a single one, or see `accelerate config`."
        )
    atexit.register(state.destroy_process_group)
    return Processes(state.process_index, launched, None if on_cpu else str(state.device))
