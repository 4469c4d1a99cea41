"""Tiny random models: a Qwen2 of two layers over a few dozen tokens, made in milliseconds."""

from __future__ import annotations

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from sidecar_core.models.pair import LoadedModel


def tiny_model(
    seed: int = 0, vocab: int = 40, layers: int = 2, eos: frozenset[int] = frozenset()
) -> LoadedModel:
    """A random model; the weights are scaled up so that its distributions are far from flat."""
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
    return LoadedModel(f"tiny-{seed}", network, "fp32", f"tiny-{seed}-{vocab}-{layers}", eos)
