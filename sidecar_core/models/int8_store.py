"""int8 networks on disk: written once as safetensors, mapped into memory when loaded.

The file holds the network's state after `quantize`: int8 weights with their scales, the embedding
in bf16, all else in fp32. Nothing is converted at a later start.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from sidecar_core.models.kernels.int8 import quantize

if TYPE_CHECKING:
    from transformers import PreTrainedModel

FILE = "model.safetensors"

ALIGNMENT = 64
"""Bytes. The packed kernel's vector loads crash on weights mapped at odd addresses, so the file's
data start at a multiple of this; a tensor that still does not is copied when loaded."""


def save(network: PreTrainedModel, folder: Path) -> None:
    """Quantize an fp32 network, in place, and write it with its configs. Raises OSError."""
    from safetensors.torch import save_file

    quantize(network)
    state = {name: tensor.contiguous() for name, tensor in network.state_dict().items()}
    save_file(state, folder / FILE, metadata={"format": "pt", "padding": ""})
    if missing := -_data_start(folder / FILE) % ALIGNMENT:
        save_file(state, folder / FILE, metadata={"format": "pt", "padding": " " * missing})
    network.config.architectures = [type(network).__name__]
    network.config.save_pretrained(folder)
    if network.generation_config is not None:
        network.generation_config.save_pretrained(folder)


def load(folder: Path) -> PreTrainedModel:
    """The network that `save` wrote, its weights mapped from the file.

    Raises what transformers and safetensors raise for files that are damaged or missing.
    """
    from safetensors.torch import load_file
    from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig
    from transformers.initialization import no_init_weights

    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    with no_init_weights():  # memory that is only reserved here is never touched
        network = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
    quantize(network, empty=True)
    state = {name: _aligned(tensor) for name, tensor in load_file(folder / FILE).items()}
    network.load_state_dict(state, assign=True)
    if (folder / "generation_config.json").exists():
        network.generation_config = GenerationConfig.from_pretrained(folder, local_files_only=True)
    return network


def _aligned(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.data_ptr() % ALIGNMENT == 0 else tensor.clone()


def _data_start(file: Path) -> int:
    """Where a safetensors file's data begin: behind eight bytes of length and the header."""
    with file.open("rb") as opened:
        return 8 + int.from_bytes(opened.read(8), "little")
