"""Machines and taggers for the cost model: published figures as frozen data, by name.

Rents are the list prices of one vendor that rents all five GPUs by the second (Modal, May 2026), so
that they compare; prices change and differ between vendors, so every use of them can be given
another. Bandwidths and dense 16-bit peak rates are those of NVIDIA's data sheets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sidecar_core.errors import SidecarError, first_line, quoted
from sidecar_core.models.registry import PAIRS, GgufModel, HubModel, LocalModel, ModelSpec

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

    from sidecar_core.models.pair import LoadedModel

BYTES = {"fp32": (4, 4), "bf16": (2, 2), "int8": (1, 4)}
"""Bytes of one weight and of one cached number."""


@dataclass(frozen=True, slots=True)
class Device:
    """`bandwidth` in bytes a second, `flops` operations a second, `rent` in US dollars an hour."""

    name: str
    bandwidth: float
    flops: float
    rent: float
    source: str


DEVICES = {
    device.name: device
    for device in (
        Device("A100", 2.039e12, 312e12, 2.50, "NVIDIA A100 80 GB SXM data sheet; Modal, May 2026"),
        Device("H100", 3.35e12, 989e12, 3.95, "NVIDIA H100 SXM data sheet; Modal, May 2026"),
        Device("H200", 4.8e12, 989e12, 4.54, "NVIDIA H200 SXM data sheet; Modal, May 2026"),
        Device("T4", 320e9, 65e12, 0.59, "NVIDIA T4 data sheet; Modal, May 2026"),
        Device("L4", 300e9, 121e12, 0.80, "NVIDIA L4 data sheet; Modal, May 2026"),
        Device(
            "laptop CPU",
            89.6e9,
            0.9e12,
            0.02,
            "two channels of DDR5-5600; eight AVX2 cores at 3.5 GHz; 65 W at 0.30 a kWh",
        ),
    )
}


def device_named(name: str) -> Device:
    """The device of that name, whatever its case. Raises SidecarError for none."""
    for device in DEVICES.values():
        if device.name.lower() == name.strip().lower():
            return device
    raise SidecarError(f"There is no device {quoted(name)}; choose one of {', '.join(DEVICES)}.")


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a tagger weighs: `parameters` that a decode step reads, `weights` in bytes (an untied
    input embedding is only looked up, so it is in neither), `column` bytes of keys and values for
    one token."""

    name: str
    precision: str
    parameters: int
    weights: float
    column: float


@dataclass(frozen=True, slots=True)
class Shape:
    """What of a decoder's configuration the cost depends on; `parameters` as in `Footprint`."""

    name: str
    parameters: int
    layers: int
    kv_heads: int
    head_dim: int

    def footprint(self, precision: str) -> Footprint:
        """At "fp32", "bf16" (any 16 bit) or "int8". Raises SidecarError for another."""
        if precision not in BYTES:
            raise SidecarError(f"There is no precision {precision!r}; choose {', '.join(BYTES)}.")
        weight, cached = BYTES[precision]
        column = 2 * self.layers * self.kv_heads * self.head_dim * cached
        return Footprint(self.name, precision, self.parameters, self.parameters * weight, column)


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("Qwen2.5-0.5B-Instruct", 494_032_768, 24, 2, 64),
        Shape("Qwen2.5-1.5B-Instruct", 1_543_714_304, 28, 2, 128),
        Shape("Qwen2.5-7B-Instruct", 7_070_619_136, 28, 4, 128),
        Shape("Qwen2.5-Coder-0.5B-Instruct", 494_032_768, 24, 2, 64),
        Shape("Qwen2.5-Coder-1.5B-Instruct", 1_543_714_304, 28, 2, 128),
        Shape("SmolLM2-135M-Instruct", 134_515_008, 30, 3, 64),
        Shape("SmolLM2-135M-Instruct without layers 14 and 20", 127_434_816, 28, 3, 64),
    )
}
"""The models of the named pairs: their cost can be told before any of their weights are here."""


def shape_of(name: str, config: PreTrainedConfig) -> Shape:
    """The shape of any decoder, counted on a network without memory."""
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        network = AutoModelForCausalLM.from_config(config)
    text = config.get_text_config()
    parameters = sum(p.numel() for p in network.parameters())
    if not text.tie_word_embeddings:
        parameters -= network.get_input_embeddings().weight.numel()
    dim = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    return Shape(name, parameters, text.num_hidden_layers, heads, dim)


def shape_of_spec(spec: ModelSpec) -> Shape:
    """The shape of a model by what it is called, from its configuration alone.

    Raises SidecarError where that cannot be had.
    """
    from transformers import AutoConfig

    if spec.name in SHAPES:
        return SHAPES[spec.name]
    match spec.source:
        case LocalModel(folder):
            where: dict[str, object] = {"pretrained_model_name_or_path": folder}
        case GgufModel(file):
            where = {"pretrained_model_name_or_path": file.parent, "gguf_file": file.name}
        case HubModel(repo):
            where = {"pretrained_model_name_or_path": repo}
        case other:
            raise SidecarError(f"The shape of {spec.name} is not known ({type(other).__name__}).")
    try:
        return shape_of(spec.name, AutoConfig.from_pretrained(trust_remote_code=False, **where))
    except Exception as error:
        why = first_line(error)
        raise SidecarError(
            f"The configuration of {spec.name} cannot be read ({why}); name a pair whose models "
            f"are here, or one of {', '.join(PAIRS)}."
        ) from error


def footprint_of(model: LoadedModel) -> Footprint:
    """Of a model that is here, in the precision that it has here."""
    from sidecar_core.decoding.capacity import column_bytes

    network = model.network
    shape = shape_of(model.name, network.config)
    weights = float(model.weight_bytes)
    embedding, output = network.get_input_embeddings().weight, network.get_output_embeddings()
    if output is None or getattr(output, "weight", None) is not embedding:
        weights -= embedding.nbytes
    return Footprint(model.name, model.precision, shape.parameters, weights, column_bytes(model))
