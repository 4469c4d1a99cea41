"""A pair's name in, two networks ready to run out.

`load_pair` decides what to load, brings the weights to this machine, converts them once if need be,
and refuses with one clear line whatever the engine could not run rightly: tokenizers that differ,
attention that explicit masks and positions would break, a device or precision that is not there.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from sidecar_core.errors import SidecarError, first_line
from sidecar_core.events import LoadProgress
from sidecar_core.models import int8_store
from sidecar_core.models.architecture import (
    drop_layers,
    load_config,
    require_plain_decoder,
    require_usable_forward,
)
from sidecar_core.models.cache import Progress, silent
from sidecar_core.models.convert import convert
from sidecar_core.models.kernels import attention
from sidecar_core.models.kernels.calibration import calibration_of
from sidecar_core.models.kernels.linear import steady
from sidecar_core.models.pair import LoadedModel, Pair
from sidecar_core.models.precision import choose_precision
from sidecar_core.models.quiet import quiet
from sidecar_core.models.registry import PairSpec
from sidecar_core.models.sources import Weights, choose, resolve
from sidecar_core.models.tokenizer import (
    eos_ids,
    load_tokenizer,
    require_ids_fit,
    require_same_tokenizer,
)
from sidecar_core.settings import Precision

if TYPE_CHECKING:
    from transformers import PreTrainedModel

SPREAD = "spread"
"""The device's name for "as many as it takes"."""

DeviceMap = str | dict[str, str] | None

_DTYPES: dict[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}


def fetch(
    name: str = "auto",
    progress: Progress | None = None,
    precision: str = "auto",
    device: str | None = None,
) -> tuple[str, str]:
    """Brings a pair's weights to this machine, converted to the form that `load_pair` would use on
    `device`, without loading them: (pair's name, note).

    Raises SidecarError where `load_pair` would for lack of weights.
    """
    form, _ = choose_precision(precision, _device(device))
    spec, note = choose(name)
    _files(spec, form, progress or silent)
    return spec.name, note


def load_pair(
    name: str = "auto",
    *,
    precision: str = "auto",
    device: str | None = None,
    progress: Progress | None = None,
) -> Pair:
    """Target and draft of the pair `name` (see `registry`), ready to run.

    `precision` is "auto", "fp32", "bf16" or "int8"; `device` is torch's name of one, by default
    CUDA if there is one, else the CPU. With the device "spread" the target's layers are laid over
    all GPUs, and over main memory where those are full (transformers' `device_map`); the draft
    takes the first GPU. `progress` hears what is being done. The pair's `note` says
    what was chosen and why.

    Raises SidecarError for an unknown name, precision or device, for weights that cannot be had or
    are damaged, for two models whose tokenizers differ, and for a kind of model that the engine
    cannot run.
    """
    tell = progress or silent
    where = _device(device)
    form, reason = choose_precision(precision, where)
    spec, note = choose(name)
    note = " ".join(filter(None, [note, reason]))
    if note:
        tell(LoadProgress(note))
    (target, target_folder), (draft, draft_folder) = _files(spec, form, tell)
    for folder in (target_folder, draft_folder):
        require_plain_decoder(load_config(folder))
    tokenizer = load_tokenizer(target_folder)
    require_same_tokenizer(tokenizer, load_tokenizer(draft_folder))

    def loaded(weights: Weights, folder: Path, device_map: DeviceMap = None) -> LoadedModel:
        tell(LoadProgress(f"Loading {weights.name}"))
        network = load_network(folder, form, where, weights.without_layers, device_map)
        make_steady(network)
        fingerprint = _fingerprint(weights, form)
        return LoadedModel(
            name=weights.name,
            network=network,
            precision=form,
            fingerprint=fingerprint,
            eos_ids=eos_ids(network, tokenizer),
            calibration=calibration_of(network, weights.name, fingerprint, where, tell),
        )

    large = loaded(target, target_folder, "auto" if device == SPREAD else None)
    small = large if spec.draft == spec.target else loaded(draft, draft_folder)
    pair = Pair(spec.name, large, small, tokenizer, note)
    require_ids_fit(tokenizer, pair.draft.name, pair.draft.vocab_size)
    return pair


def make_steady(network: PreTrainedModel) -> None:
    """Let no row of a decoding pass depend on the others (see `kernels`), in place."""
    steady(network)
    if network._supports_attention_backend:
        network.set_attn_implementation(attention.register())


def load_plain(
    name: str = "auto", *, device: str | None = None, progress: Progress | None = None
) -> tuple[PreTrainedModel, PreTrainedModel]:
    """Target and draft in fp32 exactly as transformers runs them, to compare against."""
    tell, where = progress or silent, _device(device)
    spec, _ = choose(name)
    target, draft = (
        load_network(folder, "fp32", where, weights.without_layers)
        for weights, folder in _files(spec, "fp32", tell)
    )
    return target, draft


def _files(spec: PairSpec, form: Precision, tell: Progress) -> list[tuple[Weights, Path]]:
    """Target and draft with the folders to load them from."""
    found = [resolve(model, tell) for model in (spec.target, spec.draft)]
    for weights in found:
        if not weights.is_gguf:  # refused before it is converted
            require_plain_decoder(load_config(weights.path))
    as_it_is = [form != "int8" and not weights.is_gguf for weights in found]
    return [
        (weights, weights.path if plain else convert(weights, form, tell))
        for weights, plain in zip(found, as_it_is, strict=True)
    ]


def load_network(
    folder: Path,
    form: Precision,
    device: torch.device,
    without_layers: tuple[int, ...] = (),
    device_map: DeviceMap = None,
) -> PreTrainedModel:
    """The network in `folder`, in eval mode, without gradients, on `device` or laid over several
    by `device_map`.

    safetensors of the same dtype are mapped into memory, not copied.
    """
    try:
        with quiet():
            network, lacking = (
                (int8_store.load(folder), [])
                if form == "int8"
                else _from_transformers(folder, _DTYPES[form], device_map)
            )
    except (MemoryError, torch.OutOfMemoryError) as error:
        raise SidecarError(
            f"There is not enough memory for {folder.name}; use a smaller pair or precision."
        ) from error
    except Exception as error:
        why = first_line(error)
        raise SidecarError(
            f"The model in {folder} cannot be loaded ({why}); it must be a causal language model "
            "that transformers knows, with safetensors weights."
        ) from error
    if lacking:
        more = f", and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise SidecarError(
            f"The weights in {folder} lack {lacking[0]} (or it has another shape){more}; "
            "fetch the model again."
        )
    require_usable_forward(network)
    if without_layers:
        drop_layers(network, without_layers)
    network.eval().requires_grad_(False)
    return network if device_map else network.to(device)


def _from_transformers(
    folder: Path, dtype: torch.dtype, device_map: DeviceMap
) -> tuple[PreTrainedModel, list[str]]:
    """The network as transformers loads it, and the tensors that it would have had to make up."""
    from transformers import AutoModelForCausalLM

    network, found = AutoModelForCausalLM.from_pretrained(
        folder,
        output_loading_info=True,
        dtype=dtype,
        device_map=device_map,
        attn_implementation="sdpa",
        use_safetensors=True,
        local_files_only=True,
        trust_remote_code=False,
    )
    return network, sorted(found["missing_keys"]) + sorted(map(str, found["mismatched_keys"]))


def _fingerprint(weights: Weights, form: Precision) -> str:
    what = f"{weights.digest} without {weights.without_layers} in {form}"
    return hashlib.sha256(what.encode()).hexdigest()[:16]


def _device(name: str | None) -> torch.device:
    if name is None or name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device("cuda:0" if name == SPREAD else name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise SidecarError(
            f"There is no device {name!r} here; leave it out, or choose cpu"
            f"{', cuda' if torch.cuda.is_available() else ''}."
        ) from error
    return device
