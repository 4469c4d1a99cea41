"""Tiny random models: a Qwen2 of two layers over a few dozen tokens, made in milliseconds."""

from __future__ import annotations

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from sidecar_core.models.kernels.int8 import quantize
from sidecar_core.models.loading import make_steady
from sidecar_core.models.pair import LoadedModel
from sidecar_core.settings import Precision


def tiny_model(
    seed: int = 0,
    vocab: int = 40,
    layers: int = 2,
    eos: frozenset[int] = frozenset(),
    precision: Precision = "fp32",
) -> LoadedModel:
    """A random model, ready to run as a loaded one is; the weights are scaled up so that its
    distributions are far from flat."""
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=vocab,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        initializer_range=0.2,
    )
    network = Qwen2ForCausalLM(config).eval().requires_grad_(False)
    if precision == "int8":
        quantize(network)
    elif precision == "bf16":
        network.bfloat16()
    make_steady(network)
    fingerprint = f"tiny-{seed}-{vocab}-{layers}-{precision}"
    return LoadedModel(f"tiny-{seed}", network, precision, fingerprint, eos)
