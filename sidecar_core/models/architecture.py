"""Which networks the engine can run: plain decoders that attend to whatever a mask allows."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from sidecar_core.errors import SidecarError, first_line
from sidecar_core.models.quiet import quiet

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

_FORWARD_NEEDS = ("input_ids", "attention_mask", "position_ids", "cache", "logits_to_keep")

FIXED_ROPE = frozenset({"default", "linear", "yarn", "llama3", "proportional"})
"""Rotary positions in which a token's keys follow from its own position alone."""


def load_config(folder: Path) -> PreTrainedConfig:
    """The config of the model in `folder`. Raises SidecarError where transformers knows it not."""
    from transformers import AutoConfig

    try:
        with quiet():
            return AutoConfig.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False
            )
    except Exception as error:
        why = first_line(error)
        raise SidecarError(
            f"The model in {folder} cannot be loaded ({why}); it must be of a kind that "
            "transformers itself knows."
        ) from error


def require_plain_decoder(config: PreTrainedConfig) -> None:
    """SidecarError unless every layer attends to whatever an explicit mask allows."""
    kind = getattr(config, "model_type", "unknown")
    architectures = getattr(config, "architectures", None) or []
    if config.is_encoder_decoder or not any(a.endswith("CausalLM") for a in architectures or [""]):
        raise SidecarError(
            f"A {kind} model ({', '.join(architectures) or 'no architecture named'}) is not a "
            "causal language model; use one whose architecture ends in ForCausalLM."
        )
    text = config.get_text_config()
    types = set(getattr(text, "layer_types", None) or ["full_attention"])
    window = getattr(text, "sliding_window", None)
    slides = window is not None and getattr(text, "use_sliding_window", True)
    if types != {"full_attention"} or (slides and not getattr(text, "layer_types", None)):
        other = ", ".join(sorted(types - {"full_attention"})) or f"a sliding window of {window}"
        raise SidecarError(
            f"A {kind} model here has {other}; suffix and document masking need full attention in "
            "every layer. Use a model such as Qwen2.5, Llama 3 or SmolLM2."
        )
    if getattr(text, "attn_logit_softcapping", None) is not None:
        raise SidecarError(
            f"A {kind} model caps its attention scores, which torch's attention cannot; use a "
            "model such as Qwen2.5, Llama 3 or SmolLM2."
        )
    if getattr(text, "alibi", False):
        raise SidecarError(
            f"A {kind} model here measures distances by counting columns of its cache (ALiBi), and "
            "masking leaves columns out. Use a model such as Qwen2.5, Llama 3 or SmolLM2."
        )
    if scaled := sorted(set(_rope_types(text)) - FIXED_ROPE):
        raise SidecarError(
            f"A {kind} model here has {', '.join(scaled)} positions, which change with the length "
            "of the text. An article is read in chunks that are kept, so its chunks would not fit "
            "together. Use a model such as Qwen2.5, Llama 3 or SmolLM2."
        )


def _rope_types(config: PreTrainedConfig) -> Iterator[str]:
    """The types of a config's rotary positions: one for all layers, or one for each kind."""
    parameters: Mapping[str, Any] = getattr(config, "rope_parameters", None) or {}
    for each in (parameters, *parameters.values()):
        if isinstance(each, Mapping):
            yield str(each.get("rope_type") or each.get("type") or "default")


def require_usable_forward(network: PreTrainedModel) -> None:
    """SidecarError unless the network takes explicit masks, positions and a cache."""
    takes = inspect.signature(network.forward).parameters
    lacking = [name for name in _FORWARD_NEEDS if name not in takes]
    if lacking:
        raise SidecarError(
            f"{type(network).__name__} does not accept {', '.join(lacking)}; use a model such as "
            "Qwen2.5, Llama 3 or SmolLM2."
        )


def drop_layers(network: PreTrainedModel, layers: tuple[int, ...]) -> None:
    """Takes decoder layers (counted from 0) out of a network, in place."""
    stack = network.model.layers
    kept = [layer for i, layer in enumerate(stack) if i not in layers]
    for index, layer in enumerate(kept):
        layer.self_attn.layer_idx = index
    network.model.layers = torch.nn.ModuleList(kept)
    config = network.config
    config.num_hidden_layers = len(kept)
    if getattr(config, "layer_types", None):
        config.layer_types = [t for i, t in enumerate(config.layer_types) if i not in layers]
