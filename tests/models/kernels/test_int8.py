"""int8 layers: what each kernel computes, against the weights that they hold."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

from sidecar_core.models.kernels import int8
from sidecar_core.models.kernels.int8 import (
    HalfEmbedding,
    Int8Linear,
    integers_are_exact,
    kernels,
    quantize,
    use_kernel,
)
from sidecar_core.models.kernels.kind import pass_kind
from tests.models.kernels.test_linear import inputs, linear
from tests.tiny import tiny_model

needs_integers = pytest.mark.skipif(
    not integers_are_exact(), reason="this processor's integer products overflow"
)
KERNELS = [pytest.param("integer", marks=needs_integers), "packed"]


def layer_of(plain: nn.Linear, kernel: str) -> Int8Linear:
    made = Int8Linear.of(plain)
    made.kernel = kernel
    return made


@pytest.mark.parametrize("kind", ["decode", "read"])
@pytest.mark.parametrize("rows", [1, 8, 9, 70])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kernel", KERNELS)
def test_int8_is_the_plain_layer_up_to_its_rounding(rows, bias, kind, kernel):
    plain, x = linear(bias=bias), inputs(rows)
    with pass_kind(kind):
        wanted, got = plain(x), layer_of(plain, kernel)(x)
    assert got.dtype == torch.float32
    assert float((got - wanted).norm() / wanted.norm()) < 0.02


@pytest.mark.parametrize("kind", ["decode", "read"])
@pytest.mark.parametrize("wide", [torch.bfloat16, torch.float32])
def test_packed_int8_multiplies_by_the_weights_that_it_holds(wide, kind):
    layer, x = layer_of(linear(), "packed"), inputs(9)
    layer.wide = wide
    wanted = x.bfloat16().float() @ (layer.weight * layer.scale.float()[:, None]).T + layer.bias
    with pass_kind(kind):
        assert float((layer(x) - wanted).norm() / wanted.norm()) < 0.004


def exact(layer: Int8Linear, x: torch.Tensor) -> torch.Tensor:
    """The layer's own weights in fp64, without a bias."""
    return x.double() @ (layer.weight.double() * layer.scale.double()[:, None]).T


@needs_integers
@pytest.mark.parametrize("rows", [1, 2, 9, 70])
@pytest.mark.parametrize("loud", [1, 1000])
def test_the_integer_kernel_loses_next_to_nothing(rows, loud):
    layer, x = layer_of(linear(bias=False), "integer"), inputs(rows)
    x[..., 5] *= loud  # activations of one channel are often that much larger
    wanted, got = exact(layer, x[0]), layer(x)[0].double()
    assert float((got - wanted).norm() / wanted.norm()) < 1e-4
    packed = layer_of(linear(bias=False), "packed")(x)[0].double()
    assert (got - wanted).norm() < (packed - wanted).norm()


@needs_integers
def test_activations_at_the_ends_of_the_range_are_whole_numbers():
    layer, x = layer_of(linear(bias=False), "integer"), torch.zeros(1, 4, 96)
    x[0, 1, 3], x[0, 2, 3], x[0, 3] = 7.0, -7.0, -1e-3
    wanted, got = exact(layer, x[0]), layer(x)[0].double()
    assert torch.allclose(got, wanted, rtol=1e-6, atol=1e-12)
    assert not got[0].any()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf")])
def test_a_row_that_is_not_finite_stays_so_and_harms_no_other(kernel, wrong):
    layer, x = layer_of(linear(), kernel), inputs(3)
    whole = layer(x.clone())
    x[0, 1, 7] = wrong
    found = layer(x)
    assert not found[0, 1].isfinite().any()
    assert torch.equal(found[0, [0, 2]], whole[0, [0, 2]])


@needs_integers
def test_layers_that_share_an_input_and_layers_that_do_not_give_the_same():
    first, second = layer_of(linear(), "integer"), layer_of(linear(outputs=30), "integer")
    x, other = inputs(3), inputs(5)
    alone = [layer(x.clone()) for layer in (first, second)]
    assert torch.equal(first(x), alone[0])
    assert torch.equal(second(x), alone[1])
    first(other)
    assert torch.equal(second(x), alone[1])


@needs_integers
def test_threads_do_not_share_activations():
    layer = layer_of(linear(), "integer")
    wanted = {rows: layer(inputs(rows)) for rows in range(1, 9)}
    wrong = []

    def many(rows: int) -> None:
        for _ in range(200):
            if not torch.equal(layer(inputs(rows)), wanted[rows]):
                wrong.append(rows)

    threads = [threading.Thread(target=many, args=(rows,)) for rows in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_products_that_overflow_are_noticed_and_such_a_machine_takes_the_other_kernel(monkeypatch):
    product = torch._int_mm
    monkeypatch.setattr(torch, "_int_mm", lambda x, w: product(x, w).clamp(-32768, 32767))
    assert not integers_are_exact.__wrapped__()
    monkeypatch.setattr(int8, "integers_are_exact", lambda: False)
    network = tiny_model(0).network
    assert kernels(network) == ()
    quantize(network)
    assert kernels(network) == ("packed",)
    layers = [m for m in network.modules() if isinstance(m, Int8Linear)]
    assert {layer.kernel for layer in layers} == {"packed"}


@needs_integers
def test_a_kernel_is_taken_by_every_layer():
    network = tiny_model(0).network
    quantize(network)
    ids = torch.arange(30)[None]
    found = {}
    for kernel in ("integer", "packed"):
        use_kernel(network, kernel)
        found[kernel] = network(input_ids=ids).logits
    assert not torch.equal(found["integer"], found["packed"])
    assert torch.allclose(found["integer"], found["packed"], atol=0.1)


def test_widening_in_blocks_is_widening_at_once(monkeypatch):
    layer, x = layer_of(linear(), "packed"), inputs(40)
    whole = layer(x)
    monkeypatch.setattr("sidecar_core.models.kernels.int8.BLOCK_BYTES", 96 * 4 * 7)
    assert torch.allclose(layer(x), whole, atol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_channel_of_zeros_stays_zero(kernel):
    plain = linear(bias=False)
    plain.weight[3] = 0
    assert not layer_of(plain, kernel)(inputs(2))[..., 3].any()


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
