"""The CPU's linear layers against plain ones."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from sidecar_core.models.kernels.kind import pass_kind
from sidecar_core.models.kernels.linear import (
    DEVICE_BLOCK,
    HalfEmbedding,
    Int8Linear,
    SteadyLinear,
    quantize,
    steady,
    steady_rows,
)
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


@pytest.mark.parametrize("kind", ["decode", "read"])
@pytest.mark.parametrize("rows", [1, 8, 9, 70])
@pytest.mark.parametrize("bias", [True, False])
def test_int8_is_the_plain_layer_up_to_its_rounding(rows, bias, kind):
    plain, x = linear(bias=bias), inputs(rows)
    with pass_kind(kind):
        wanted, got = plain(x), Int8Linear.of(plain)(x)
    assert got.dtype == torch.float32
    assert float((got - wanted).norm() / wanted.norm()) < 0.02


@pytest.mark.parametrize("kind", ["decode", "read"])
@pytest.mark.parametrize("wide", [torch.bfloat16, torch.float32])
def test_int8_multiplies_by_the_weights_that_it_holds(wide, kind):
    layer, x = Int8Linear.of(linear()), inputs(9)
    layer.wide = wide
    wanted = x.bfloat16().float() @ (layer.weight * layer.scale.float()[:, None]).T + layer.bias
    with pass_kind(kind):
        assert float((layer(x) - wanted).norm() / wanted.norm()) < 0.004


def layers() -> dict[str, nn.Module]:
    """One of each kind, with the widened form of int8 in either precision."""
    half, wide = Int8Linear.of(linear()), Int8Linear.of(linear())
    half.wide, wide.wide = torch.bfloat16, torch.float32
    plain, bf16 = linear(), linear().bfloat16()
    plain.__class__ = bf16.__class__ = SteadyLinear
    return {"int8 half": half, "int8 wide": wide, "fp32": plain, "bf16": bf16}


@pytest.mark.parametrize("name", ["int8 half", "int8 wide", "fp32", "bf16"])
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


def test_widening_in_blocks_is_widening_at_once(monkeypatch):
    layer, x = Int8Linear.of(linear()), inputs(40)
    whole = layer(x)
    monkeypatch.setattr("sidecar_core.models.kernels.linear.BLOCK_BYTES", 96 * 4 * 7)
    assert torch.allclose(layer(x), whole, atol=1e-6)


def test_a_channel_of_zeros_stays_zero():
    plain = linear(bias=False)
    plain.weight[3] = 0
    assert not Int8Linear.of(plain)(inputs(2))[..., 3].any()


def test_a_quantized_network_keeps_the_distribution_and_is_smaller():
    model, exact = tiny_model(0), tiny_model(0)
    quantize(model.network)
    ids = torch.arange(30)[None]
    p = model.network(input_ids=ids).logits.softmax(-1)
    q = exact.network(input_ids=ids).logits.softmax(-1)
    assert float(torch.minimum(p, q).sum(-1).mean()) > 0.9
    assert model.weight_bytes < exact.weight_bytes / 2
    assert isinstance(model.network.model.embed_tokens, HalfEmbedding)


def test_an_empty_quantized_network_has_a_place_of_its_kind_for_every_value():
    def places(*, empty: bool) -> dict[str, tuple]:
        network = tiny_model(0).network
        network.extra = nn.ModuleList([linear(), linear(bias=False)])
        quantize(network, empty=empty)
        return {name: (v.shape, v.dtype) for name, v in network.state_dict().items()}

    assert places(empty=True) == places(empty=False)


def test_steady_layers_change_no_result():
    model, exact = tiny_model(0), tiny_model(0)
    steady(model.network)
    ids = torch.arange(30)[None]
    assert torch.allclose(
        model.network(input_ids=ids).logits, exact.network(input_ids=ids).logits, atol=1e-4
    )
