"""The cost model against the reference's table, and against plain arithmetic."""

from __future__ import annotations

import dataclasses

import pytest
from transformers import LlamaConfig, PreTrainedConfig, Qwen2Config

from sidecar_core.decoding.cache import SegmentedCache
from sidecar_core.decoding.passes import forward
from sidecar_core.errors import SidecarError
from sidecar_core.events import RunFinished, RunStarted, TagsFinished
from sidecar_core.experiments.cost.devices import (
    DEVICES,
    SHAPES,
    Footprint,
    footprint_of,
    shape_of,
    shape_of_spec,
)
from sidecar_core.experiments.cost.model import (
    LEAVES_OUT,
    PART3,
    CostSetup,
    Lengths,
    as_dict,
    pays_from,
    rows,
)
from sidecar_core.models.registry import LocalModel, ModelSpec
from sidecar_core.report import RunReport
from sidecar_core.settings import RunSettings
from tests.tiny import tiny_model

PRINTED = """
1 3.11 3.09 0
16 3.38 3.15 7
32 3.67 3.21 14
64 4.24 3.33 28
128 5.39 3.56 51
"""
"""Part III: batch, GB a step with the document and without it, speed-up in per cent."""


def test_part_three_is_reproduced_to_the_digits_printed_there():
    ours = [
        f"{r.batch} {r.full_bytes / 1e9:.2f} {r.masked_bytes / 1e9:.2f} {100 * r.speedup:.0f}"
        for r in rows(PART3)
    ]
    assert ours == PRINTED.split("\n")[1:-1]


def qwen(hidden: int, inner: int, layers: int, heads: int, kv: int, **other) -> Qwen2Config:
    return Qwen2Config(
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv,
        **{"vocab_size": 151_936, "tie_word_embeddings": True, **other},
    )


def smol(layers: int) -> LlamaConfig:
    return LlamaConfig(
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=layers,
        num_attention_heads=9,
        num_key_value_heads=3,
        vocab_size=49_152,
        tie_word_embeddings=True,
    )


CONFIGS = {
    "Qwen2.5-0.5B-Instruct": qwen(896, 4864, 24, 14, 2),
    "Qwen2.5-1.5B-Instruct": qwen(1536, 8960, 28, 12, 2),
    "Qwen2.5-7B-Instruct": qwen(
        3584, 18_944, 28, 28, 4, vocab_size=152_064, tie_word_embeddings=False
    ),
    "Qwen2.5-Coder-0.5B-Instruct": qwen(896, 4864, 24, 14, 2, tie_word_embeddings=False),
    "Qwen2.5-Coder-1.5B-Instruct": qwen(1536, 8960, 28, 12, 2, tie_word_embeddings=False),
    "SmolLM2-135M-Instruct": smol(30),
    "SmolLM2-135M-Instruct without layers 14 and 20": smol(28),
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_shapes_written_down_are_those_of_the_configurations(name: str):
    assert shape_of(name, CONFIGS[name]) == SHAPES[name]


def test_a_configuration_without_grouped_heads_has_as_many_caches_as_heads():
    config: PreTrainedConfig = LlamaConfig(
        hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4
    )
    shape = shape_of("plain", config)
    assert (shape.kv_heads, shape.head_dim) == (4, 16)


def test_any_model_folder_has_a_shape_by_its_configuration_alone(tmp_path):
    CONFIGS["SmolLM2-135M-Instruct"].save_pretrained(tmp_path)
    found = shape_of_spec(ModelSpec("mine", LocalModel(tmp_path)))
    assert found == dataclasses.replace(SHAPES["SmolLM2-135M-Instruct"], name="mine")


def test_a_model_without_a_readable_configuration_is_one_clear_line(tmp_path):
    with pytest.raises(SidecarError, match="configuration of mine cannot be read") as caught:
        shape_of_spec(ModelSpec("mine", LocalModel(tmp_path)))
    assert "\n" not in str(caught.value)


def test_a_token_of_the_small_target_takes_28_672_bytes_in_16_bit():
    assert SHAPES["Qwen2.5-1.5B-Instruct"].footprint("bf16").column == 28_672


def test_a_loaded_model_weighs_what_its_tensors_and_its_cache_weigh():
    model = tiny_model()
    cache = SegmentedCache()
    forward(model, cache, [1, 2, 3], 0, segment="head", rows=0)
    footprint = footprint_of(model)
    assert footprint.column == cache.nbytes / 3
    looked_up = model.network.get_input_embeddings().weight
    assert model.network.get_output_embeddings().weight is not looked_up
    assert footprint.parameters * 4 == pytest.approx(footprint.weights, rel=0.01)  # rope's buffers
    assert footprint.weights == model.weight_bytes - looked_up.nbytes


ROUND = CostSetup(
    footprint=Footprint("round", "bf16", parameters=1_000, weights=2_000.0, column=10.0),
    device=dataclasses.replace(DEVICES["A100"], bandwidth=100.0, flops=4_000.0, rent=3.6),
    standalone_device=dataclasses.replace(DEVICES["T4"], bandwidth=50.0, flops=1_000.0, rent=1.8),
    lengths=Lengths(full=50, masked=10, standalone=20, sidecar_read=3, standalone_read=6, tags=4),
    idle=0.5,
    network=7.0,
)


def test_prices_are_what_pencil_and_paper_say():
    row = rows(ROUND, [2])[0]
    assert (row.full_bytes, row.masked_bytes) == (3_000.0, 2_200.0)
    assert (row.full_seconds, row.masked_seconds) == (30.0, 22.0)
    # Reading: 2 × 1,000 × 3 operations at half of 4,000 a second. 3.6 an hour is 0.001 a second.
    assert row.sidecar_price == pytest.approx((3 + 4 * 22 / 2) * 0.001 * 1e6)
    assert row.attended_price == pytest.approx((3 + 4 * 30 / 2) * 0.001 * 1e6)
    # Its own prompt: 12,000 operations at 500 a second; its step: 2,400 bytes at 50 a second.
    assert row.standalone_price == pytest.approx((24 + 4 * 48 / 2) * 0.0005 / 0.5 * 1e6 + 7)


@pytest.mark.parametrize("worth", [0.01, 0.05, 0.2, 0.5])
def test_masking_pays_from_the_first_batch_that_is_fast_enough(worth: float):
    scenario = dataclasses.replace(PART3, worth=worth)
    found = pays_from(scenario)
    searched = next(b for b in range(1, 10_000) if rows(scenario, [b])[0].speedup >= worth)
    assert found == searched


def test_masking_that_hides_next_to_nothing_never_pays():
    lengths = dataclasses.replace(PART3.lengths, full=130, masked=129)
    assert pays_from(dataclasses.replace(PART3, lengths=lengths)) is None


def test_a_device_changes_seconds_and_prices_but_no_speed_up():
    on_a100 = rows(CostSetup(PART3.footprint))
    on_t4 = rows(CostSetup(PART3.footprint, DEVICES["T4"]))
    assert [r.speedup for r in on_a100] == [r.speedup for r in on_t4]
    assert on_t4[0].full_seconds / on_a100[0].full_seconds == pytest.approx(6.37, abs=0.01)


def finished_run(document_masking: bool) -> RunReport:
    def tags(tagger, columns: int, read: int) -> TagsFinished:
        return TagsFinished(tagger, "a", ("a",), "[", columns, columns * 10, read, 1.0)

    settings = RunSettings(document_masking=document_masking).as_dict()
    segments = (("head", 10), ("document", 200), ("instruction", 12), ("suffix", 9), ("tail", 3))
    sidecar = tags("sidecar", 100 if document_masking else 300, 15)
    return RunReport.of(
        [
            RunStarted("tiny", "fp32", "cpu", settings, segments, 225, 234, 9, (0, 0)),
            sidecar,
            tags("standalone", 90, 71),
            RunFinished("stop", {}, 3.0),
        ]
    )


@pytest.mark.parametrize("document_masking", [True, False])
def test_lengths_come_from_the_last_run_whether_it_masked_or_not(document_masking: bool):
    lengths = Lengths.of_run(finished_run(document_masking))
    assert lengths == Lengths(
        full=300, masked=100, standalone=90, sidecar_read=15, standalone_read=71, tags=20
    )


def test_a_run_without_tags_has_no_lengths():
    with pytest.raises(SidecarError, match="no tags of both taggers"):
        Lengths.of_run(RunReport())


@pytest.mark.parametrize(
    "changes",
    [
        {"lengths": Lengths(full=10, masked=20)},
        {"lengths": Lengths(full=-1, masked=-2)},
        {"idle": 1.0},
        {"worth": 0.0},
        {"network": float("nan")},
        {"device": dataclasses.replace(DEVICES["T4"], rent=-1.0)},
        {"standalone_device": dataclasses.replace(DEVICES["T4"], rent=float("nan"))},
    ],
)
def test_impossible_scenarios_are_refused_in_one_line(changes):
    with pytest.raises(SidecarError) as caught:
        rows(dataclasses.replace(PART3, **changes))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("batches", [[], [0], [10**9]])
def test_impossible_batches_are_refused(batches):
    with pytest.raises(SidecarError, match="Batch sizes"):
        rows(PART3, batches)


def test_the_result_says_what_it_leaves_out_and_where_its_figures_come_from():
    result = as_dict(PART3, rows(PART3))
    assert result["leaves_out"] == list(LEAVES_OUT)
    assert any("attention" in line for line in LEAVES_OUT)
    assert all(device.source for device in DEVICES.values())
    assert {row["batch"] for row in result["rows"]} == {1, 16, 32, 64, 128}
    assert result["pays_from_batch"] == 11
