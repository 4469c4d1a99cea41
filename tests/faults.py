"""Things that happen to a model in the middle of its work: hooks on its forward passes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from sidecar_core.models.pair import LoadedModel


@contextlib.contextmanager
def before_each_pass(model: LoadedModel, action: Callable[[int], None]) -> Iterator[None]:
    """Calls `action` with the pass's number, from 1, before each of the model's passes."""
    count = 0

    def hook(*_: Any) -> None:
        nonlocal count
        count += 1
        action(count)

    handle = model.network.base_model.register_forward_pre_hook(hook)
    try:
        yield
    finally:
        handle.remove()


@contextlib.contextmanager
def not_finite(model: LoadedModel, first: int, value: float) -> Iterator[None]:
    """From pass `first` on, one number of the model's hidden state is `value`."""
    count = 0

    def hook(module: Any, args: Any, output: Any) -> None:
        nonlocal count
        count += 1
        if count >= first:
            output.last_hidden_state.view(-1)[-1] = value

    handle = model.network.base_model.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def failing(first: int, error: Exception) -> Callable[[int], None]:
    """An action that raises `error` from pass `first` on."""

    def action(number: int) -> None:
        if number >= first:
            raise error

    return action


OUT_OF_MEMORY = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    MemoryError(),
    RuntimeError("[enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: can't allocate memory"),
    RuntimeError("[enforce fail at CPUAllocator.cpp:67] . DefaultCPUAllocator: not enough memory"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
]
"""How memory that runs out shows itself."""
