"""Claims about the CPU attention: transformers' sdpa is the oracle."""

from __future__ import annotations

import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from sidecar_core.models.kernels import attention
from sidecar_core.models.kernels.kind import BLOCK, pass_kind


class Layer(torch.nn.Module):
    def __init__(self, groups: int) -> None:
        super().__init__()
        self.num_key_value_groups = groups
        self.is_causal = True


def qkv(batch: int, heads: int, kv_heads: int, rows: int, columns: int) -> list[torch.Tensor]:
    torch.manual_seed(0)
    query = torch.randn(batch, rows, heads, 8).transpose(1, 2)  # as a projection leaves it
    room = [torch.randn(batch, kv_heads, columns + 9, 8)[:, :, :columns] for _ in "kv"]
    return [query, *room]


@pytest.mark.parametrize("rows", [1, 2, 5, 16, 17, 40])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(("heads", "kv_heads"), [(6, 2), (4, 4), (6, 1)])
@pytest.mark.parametrize("kind", ["bool", "additive", "per head", "one row", "none"])
def test_a_masked_pass_equals_sdpa(
    rows: int, batch: int, heads: int, kv_heads: int, kind: str
) -> None:
    tensors = qkv(batch, heads, kv_heads, rows, 40)
    mask: torch.Tensor | None = torch.rand(batch, 1, rows, 40) < 0.6
    mask[..., 0] = True
    if kind == "additive":
        mask = torch.zeros(mask.shape).masked_fill(~mask, float("-inf"))
    elif kind == "per head":
        mask = torch.rand(batch, heads, rows, 40) < 0.6
        mask[..., 0] = True
    elif kind == "one row":
        mask = mask[:, :, :1]
    elif kind == "none":
        mask = None
    layer = Layer(heads // kv_heads)
    ours, _ = attention.steady_attention(layer, *tensors, mask, scaling=0.3)
    theirs, _ = sdpa_attention_forward(layer, *tensors, mask, scaling=0.3)
    assert ours.shape == theirs.shape == (batch, rows, heads, 8)
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-5)


def test_a_row_that_may_attend_to_nothing_stays_finite() -> None:
    mask = torch.ones(1, 1, 3, 10, dtype=torch.bool)
    mask[:, :, 1] = False
    ours, _ = attention.steady_attention(Layer(3), *qkv(1, 6, 2, 3, 10), mask)
    assert ours.isfinite().all()


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_a_model_gives_the_same_logits_and_text_with_either_attention(kv_heads: int) -> None:
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=40,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=kv_heads,
        initializer_range=0.2,
        attn_implementation="sdpa",
    )
    network = Qwen2ForCausalLM(config).eval()
    ids = torch.randint(0, 40, (2, 24))
    mask = torch.rand(2, 1, 24, 24).gt(0.3).tril() | torch.eye(24, dtype=torch.bool)

    def results() -> list[torch.Tensor]:
        with torch.no_grad():
            return [
                network(input_ids=ids).logits,
                network(input_ids=ids, attention_mask=mask).logits,
                network(input_ids=ids[:, :5], attention_mask=mask[:, :, :5, :5]).logits,
                network.generate(ids, max_new_tokens=9, do_sample=False),
            ]

    theirs = results()
    network.set_attn_implementation(attention.register())
    assert network.config._attn_implementation == attention.NAME
    for ours, expected in zip(results(), theirs, strict=True):
        torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("rows", [1, 2, 5, 9, 40])
@pytest.mark.parametrize(("heads", "kv_heads"), [(6, 2), (4, 4)])
@pytest.mark.parametrize("kind", ["decode", "read"])
def test_a_causal_pass_of_either_kind_equals_sdpa(
    rows: int, heads: int, kv_heads: int, kind: str
) -> None:
    tensors = qkv(1, heads, kv_heads, rows, 90)
    mask = torch.ones(rows, 90, dtype=torch.bool).tril(90 - rows)[None, None]
    layer = Layer(heads // kv_heads)
    with pass_kind(kind):
        ours, _ = attention.steady_attention(layer, *tensors, mask, scaling=0.3)
    theirs, _ = sdpa_attention_forward(layer, *tensors, mask, scaling=0.3)
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-5)


def test_a_row_of_a_decoding_pass_is_bit_for_bit_what_it_is_alone() -> None:
    query, key, value = qkv(1, 6, 2, 9, 700)
    with pass_kind("decode"):
        together, _ = attention.steady_attention(Layer(3), query, key, value, None)
        for row in range(9):
            end = 700 - 9 + row + 1
            alone, _ = attention.steady_attention(
                Layer(3), query[:, :, row : row + 1], key[:, :, :end], value[:, :, :end], None
            )
            assert torch.equal(alone[:, 0], together[:, row])


@pytest.mark.parametrize("chunk", [BLOCK, 2 * BLOCK, 8 * BLOCK])
def test_where_chunks_of_whole_blocks_begin_changes_no_bit(chunk: int) -> None:
    query, key, value = qkv(1, 6, 2, 600, 600)
    mask = torch.ones(600, 600, dtype=torch.bool).tril()[None, None]
    with pass_kind("read"):
        whole, _ = attention.steady_attention(Layer(3), query, key, value, mask)
        for start in range(0, 600, chunk):
            end = min(600, start + chunk)
            part, _ = attention.steady_attention(
                Layer(3),
                query[:, :, start:end],
                key[:, :, :end],
                value[:, :, :end],
                mask[:, :, start:end, :end],
            )
            assert torch.equal(part, whole[:, start:end])
