"""The CPU's linear layers against plain ones."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from sidecar_core.models.linear import (
    NARROW,
    FewRowsLinear,
    HalfEmbedding,
    Int8Linear,
    quantize,
    speed_up,
)
from tests.tiny import tiny_model


def linear(inputs: int = 96, outputs: int = 50, bias: bool = True) -> nn.Linear:
    torch.manual_seed(1)
    return nn.Linear(inputs, outputs, bias=bias).requires_grad_(False)


def inputs(rows: int, width: int = 96) -> torch.Tensor:
    return torch.randn(1, rows, width, generator=torch.Generator().manual_seed(rows))


@pytest.mark.parametrize("rows", [1, 2, 5, 16, 70])
@pytest.mark.parametrize("bias", [True, False])
def test_the_few_rows_layer_equals_the_plain_one(rows, bias):
    plain, x = linear(bias=bias), inputs(rows)
    wanted = plain(x)
    plain.__class__ = FewRowsLinear
    assert torch.allclose(plain(x), wanted, atol=1e-5)


@pytest.mark.parametrize("rows", [1, NARROW, NARROW + 1, 70])
@pytest.mark.parametrize("bias", [True, False])
def test_int8_is_the_plain_layer_up_to_its_rounding(rows, bias):
    plain, x = linear(bias=bias), inputs(rows)
    wanted, got = plain(x), Int8Linear.of(plain)(x)
    assert got.dtype == torch.float32
    assert float((got - wanted).norm() / wanted.norm()) < 0.02


@pytest.mark.parametrize("others", [1, 4, NARROW, 40])
@pytest.mark.parametrize("wide", [torch.bfloat16, torch.float32])
def test_a_row_alone_is_the_same_row_among_others(others, wide):
    layer = Int8Linear.of(linear())
    layer.wide = wide
    x = inputs(others + 1)
    alone = torch.cat([layer(x[:, i : i + 1]) for i in range(others + 1)], dim=1)
    together = layer(x)
    assert torch.allclose(alone, together, rtol=2**-6, atol=2e-2)
    loud = torch.cat([x[:, :1], 1000 * x[:, 1:]], dim=1)
    assert torch.allclose(layer(loud)[:, 0], alone[:, 0], rtol=2**-6, atol=2e-2)


def test_widening_in_blocks_is_widening_at_once(monkeypatch):
    layer, x = Int8Linear.of(linear()), inputs(40)
    whole = layer(x)
    monkeypatch.setattr("sidecar_core.models.linear.BLOCK_BYTES", 96 * 4 * 7)
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


def test_speeding_up_changes_no_result():
    model, exact = tiny_model(0), tiny_model(0)
    speed_up(model.network)
    ids = torch.arange(30)[None]
    assert torch.allclose(
        model.network(input_ids=ids).logits, exact.network(input_ids=ids).logits, atol=1e-4
    )
