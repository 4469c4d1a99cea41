"""The CPU's linear layers against plain ones."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from sidecar_core.models.kernels.int8 import Int8Linear
from sidecar_core.models.kernels.kind import pass_kind
from sidecar_core.models.kernels.linear import DEVICE_BLOCK, SteadyLinear, steady, steady_rows
from tests.tiny import tiny_model


def linear(inputs: int = 96, outputs: int = 50, bias: bool = True) -> nn.Linear:
    torch.manual_seed(1)
    return nn.Linear(inputs, outputs, bias=bias).requires_grad_(False)


def inputs(rows: int, width: int = 96) -> torch.Tensor:
    return torch.randn(1, rows, width, generator=torch.Generator().manual_seed(rows))


@pytest.mark.parametrize("rows", [1, 2, 5, 16, 70])
@pytest.mark.parametrize("bias", [True, False])
def test_the_steady_layer_equals_the_plain_one(rows, bias):
    plain, x = linear(bias=bias), inputs(rows)
    wanted = plain(x)
    plain.__class__ = SteadyLinear
    assert torch.allclose(plain(x), wanted, atol=1e-5)


def layers() -> dict[str, nn.Module]:
    """One of each kind, with both kernels of int8, and its widened form in either precision."""
    half, wide, integer = (Int8Linear.of(linear()) for _ in range(3))
    half.kernel = wide.kernel = "packed"
    integer.kernel = "integer"
    half.wide, wide.wide = torch.bfloat16, torch.float32
    plain, bf16 = linear(), linear().bfloat16()
    plain.__class__ = bf16.__class__ = SteadyLinear
    return {
        "int8 half": half, "int8 wide": wide, "int8 integer": integer, "fp32": plain, "bf16": bf16
    }  # fmt: skip


@pytest.mark.parametrize("name", ["int8 half", "int8 wide", "int8 integer", "fp32", "bf16"])
@pytest.mark.parametrize("kind", ["decode", "read"])
@pytest.mark.parametrize("others", [1, 3, 4, 7, 8, 16, 40])
def test_a_row_alone_is_bit_for_bit_the_same_row_among_others(others, kind, name):
    layer, x = layers()[name], inputs(others + 1)
    x = x.bfloat16() if name == "bf16" else x
    loud = torch.cat([x[:, :1], 1000 * x[:, 1:]], dim=1)
    with pass_kind(kind):
        alone = torch.cat([layer(x[:, i : i + 1]) for i in range(others + 1)], dim=1)
        assert torch.equal(layer(x), alone)
        assert torch.equal(layer(loud)[:, 0], alone[:, 0])


@pytest.mark.parametrize("rows", [1, DEVICE_BLOCK, DEVICE_BLOCK + 1])
def test_elsewhere_than_on_a_cpu_rows_come_in_blocks_of_one_size(rows, monkeypatch):
    seen = []
    product = torch.nn.functional.linear
    monkeypatch.setattr(
        "torch.nn.functional.linear", lambda x, *rest: seen.append(len(x)) or product(x, *rest)
    )
    weight, x = torch.empty(5, 96, device="meta"), torch.empty(rows, 96, device="meta")
    with pass_kind("decode"):
        assert steady_rows(x, weight).shape == (rows, 5)
    assert set(seen) == {DEVICE_BLOCK}


def test_steady_layers_change_no_result():
    model, exact = tiny_model(0), tiny_model(0)
    steady(model.network)
    ids = torch.arange(30)[None]
    assert torch.allclose(
        model.network(input_ids=ids).logits, exact.network(input_ids=ids).logits, atol=1e-4
    )
