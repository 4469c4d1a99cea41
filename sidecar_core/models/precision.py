"""Which precision a machine is best run in, and why.

Measured for the Coder pair on two cores (see `linear`): int8 weights decode two to four times as
fast as fp32, need under a third of the memory, and keep 0.98 of the next-token distribution.
"""

from __future__ import annotations

from typing import get_args

import torch

from sidecar_core.errors import SidecarError
from sidecar_core.settings import Precision


def choose_precision(name: str, device: torch.device) -> tuple[Precision, str]:
    """The precision for `name` ("auto" or one of them) on `device`, and for "auto" the reason.

    Raises SidecarError for a name that is none, and for int8 anywhere but on the CPU.
    """
    if name == "auto":
        return _best(device)
    if name not in get_args(Precision):
        known = ", ".join(get_args(Precision))
        raise SidecarError(f"There is no precision {name!r}; choose auto, {known}.")
    if name == "int8" and device.type != "cpu":
        raise SidecarError(f"int8 runs on the CPU only, not on {device}; choose auto or bf16.")
    return name, ""  # type: ignore[return-value]


def _best(device: torch.device) -> tuple[Precision, str]:
    if device.type == "cpu":
        return "int8", (
            "int8 on this CPU: decoding is bound by memory bandwidth, and a quarter of the bytes "
            "is read in about a quarter of the time."
        )
    if device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False):
        return "bf16", "bf16 on this GPU: it has bf16 units, and the weights need half the memory."
    return "fp32", f"fp32 on {device}: it has no bf16 units."
