"""A pair's name in, two networks ready to run out.

`load_pair` decides what to load, brings the weights to this machine, converts them once if need be,
and refuses with one clear line whatever the engine could not run rightly: tokenizers that differ,
attention that explicit masks and positions would break, a device or precision that is not there.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import torch

from sidecar_core.errors import SidecarError
from sidecar_core.events import LoadProgress
from sidecar_core.models import attention
from sidecar_core.models.cache import Progress, silent
from sidecar_core.models.convert import convert
from sidecar_core.models.pair import LoadedModel, Pair, Precision
from sidecar_core.models.sources import Weights, choose, resolve

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

_DTYPES: dict[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}

_FORWARD_NEEDS = ("input_ids", "attention_mask", "position_ids", "cache", "logits_to_keep")


def fetch(name: str = "auto", progress: Progress | None = None) -> tuple[str, str]:
    """Brings a pair's weights to this machine without loading them: (pair's name, note).

    Raises SidecarError where `load_pair` would for lack of weights.
    """
    spec, note = choose(name)
    for model in (spec.target, spec.draft):
        resolve(model, progress or silent)
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
    CUDA if there is one, else the CPU. `progress` hears what is being done. The pair's `note` says
    what was chosen and why.

    Raises SidecarError for an unknown name, precision or device, for weights that cannot be had or
    are damaged, for two models whose tokenizers differ, and for a kind of model that the engine
    cannot run.
    """
    tell = progress or silent
    where = _device(device)
    form = _precision(precision, where)
    spec, note = choose(name)
    if note:
        tell(LoadProgress(note))
    target_weights = resolve(spec.target, tell)
    draft_weights = resolve(spec.draft, tell)
    target_folder = _folder(target_weights, form, tell)
    draft_folder = _folder(draft_weights, form, tell)

    tokenizer, other = _tokenizer(target_folder), _tokenizer(draft_folder)
    require_same_tokenizer(tokenizer, other)
    models = []
    for weights, folder in ((target_weights, target_folder), (draft_weights, draft_folder)):
        tell(LoadProgress(f"Loading {weights.name}"))
        network = load_network(folder, form, where, weights.without_layers)
        models.append(
            LoadedModel(
                name=weights.name,
                network=network,
                precision=form,
                fingerprint=_fingerprint(weights, form),
                eos_ids=eos_ids(network, tokenizer),
            )
        )
    target, draft = models
    _require_ids_fit(tokenizer, draft)
    return Pair(spec.name, target, draft, tokenizer, note)


def _folder(weights: Weights, form: Precision, tell: Progress) -> Path:
    return convert(weights, form, tell) if weights.is_gguf else weights.path


def load_network(
    folder: Path,
    form: Precision,
    device: torch.device,
    without_layers: tuple[int, ...] = (),
) -> PreTrainedModel:
    """The network in `folder`, in eval mode, without gradients, on `device`.

    safetensors of the same dtype are mapped into memory, not copied.
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    try:
        with quiet():
            config = AutoConfig.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False
            )
            require_plain_decoder(config)
            network = AutoModelForCausalLM.from_pretrained(
                folder,
                dtype=_DTYPES[form],
                attn_implementation="sdpa",
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
            )
    except SidecarError:
        raise
    except (MemoryError, torch.OutOfMemoryError) as error:
        raise SidecarError(
            f"There is not enough memory for {folder.name}; take a smaller pair or precision."
        ) from error
    except Exception as error:
        why = str(error).strip().partition("\n")[0][:160] or type(error).__name__
        raise SidecarError(
            f"The model in {folder} cannot be loaded ({why}); it must be a causal language model "
            "that transformers knows, with safetensors weights."
        ) from error
    require_usable_forward(network)
    if without_layers:
        drop_layers(network, without_layers)
    if device.type == "cpu" and network._supports_attention_backend:
        network.set_attn_implementation(attention.register())
    network.eval().requires_grad_(False)
    return network.to(device)


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


def require_plain_decoder(config: PreTrainedConfig) -> None:
    """SidecarError unless every layer attends to whatever an explicit mask allows."""
    kind = getattr(config, "model_type", "unknown")
    architectures = getattr(config, "architectures", None) or []
    if config.is_encoder_decoder or not any(a.endswith("CausalLM") for a in architectures or [""]):
        raise SidecarError(
            f"A {kind} model ({', '.join(architectures) or 'no architecture named'}) is not a "
            "causal language model; take one whose architecture ends in ForCausalLM."
        )
    text = config.get_text_config()
    types = set(getattr(text, "layer_types", None) or ["full_attention"])
    window = getattr(text, "sliding_window", None)
    slides = window is not None and getattr(text, "use_sliding_window", True)
    if types != {"full_attention"} or (slides and not getattr(text, "layer_types", None)):
        other = ", ".join(sorted(types - {"full_attention"})) or f"a sliding window of {window}"
        raise SidecarError(
            f"A {kind} model here has {other}; suffix and document masking need full attention in "
            "every layer. Take a model such as Qwen2.5, Llama 3 or SmolLM2."
        )
    if getattr(text, "attn_logit_softcapping", None) is not None:
        raise SidecarError(
            f"A {kind} model caps its attention scores, which torch's attention cannot; take a "
            "model such as Qwen2.5, Llama 3 or SmolLM2."
        )


def require_usable_forward(network: PreTrainedModel) -> None:
    """SidecarError unless the network takes explicit masks, positions and a cache."""
    takes = inspect.signature(network.forward).parameters
    lacking = [name for name in _FORWARD_NEEDS if name not in takes]
    if lacking:
        raise SidecarError(
            f"{type(network).__name__} takes no {', '.join(lacking)}; take a model such as "
            "Qwen2.5, Llama 3 or SmolLM2."
        )


def require_same_tokenizer(target: PreTrainedTokenizerBase, draft: PreTrainedTokenizerBase) -> None:
    """SidecarError unless every id and every token that both tokenizers know mean the same."""
    ours, theirs = target.get_vocab(), draft.get_vocab()
    if ours == theirs:
        return
    by_id, by_id_theirs = ({i: t for t, i in v.items()} for v in (ours, theirs))
    shared = by_id.keys() & by_id_theirs.keys()
    example = next(
        (
            f"id {i} is {by_id[i]!r} in the target's and {by_id_theirs[i]!r} in the draft's"
            for i in sorted(shared)
            if by_id[i] != by_id_theirs[i]
        ),
        None,
    ) or next(
        (
            f"{t!r} is id {ours[t]} in the target's and {theirs[t]} in the draft's"
            for t in sorted(ours.keys() & theirs.keys())
            if ours[t] != theirs[t]
        ),
        None,
    )
    if example is None and len(shared) < 0.9 * max(len(ours), len(theirs)):
        example = f"the target's knows {len(ours):,} tokens and the draft's {len(theirs):,}"
    if example:
        raise SidecarError(
            f"The two models' tokenizers differ ({example}); target and draft must come from one "
            "family that shares its tokenizer."
        )


def _require_ids_fit(tokenizer: PreTrainedTokenizerBase, draft: LoadedModel) -> None:
    """SidecarError if a prompt's special token would lie outside the draft's embedding."""
    for token, index in tokenizer.get_added_vocab().items():
        if index >= draft.vocab_size:
            raise SidecarError(
                f"The target's token {token!r} has id {index}, but the draft {draft.name} knows "
                f"only {draft.vocab_size:,} tokens; take a draft of the same family."
            )


def eos_ids(network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """The tokens that end a text: the generation config's, the tokenizer's, the chat template's."""
    generation: Any = getattr(network, "generation_config", None)
    named = getattr(generation, "eos_token_id", None)
    ids = set(named if isinstance(named, list | tuple) else [named])
    ids |= {tokenizer.eos_token_id, _end_of_turn(tokenizer)}
    return frozenset(int(i) for i in ids if i is not None)


def _end_of_turn(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """The special token that the chat template puts right behind the assistant's words."""
    if not tokenizer.chat_template:
        return None
    words = "words of the assistant"
    turns = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": words}]
    try:
        text = str(tokenizer.apply_chat_template(turns, tokenize=False))
    except Exception:  # a template may insist on anything; the other two sources remain
        return None
    behind = text.rpartition(words)[2].strip()
    special = tokenizer.get_added_vocab()
    ids = tokenizer(behind, add_special_tokens=False)["input_ids"] if behind else []
    return ids[0] if ids and ids[0] in special.values() else None


def _tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    from transformers import AutoTokenizer

    try:
        with quiet():
            return AutoTokenizer.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False
            )
    except Exception as error:
        why = str(error).strip().partition("\n")[0][:160] or type(error).__name__
        raise SidecarError(
            f"The tokenizer in {folder} cannot be read ({why}); the model must bring its own."
        ) from error


def _fingerprint(weights: Weights, form: Precision) -> str:
    what = f"{weights.digest} without {weights.without_layers} in {form}"
    return hashlib.sha256(what.encode()).hexdigest()[:16]


def _device(name: str | None) -> torch.device:
    if name is None or name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise SidecarError(
            f"There is no device {name!r} here; leave it out, or choose cpu"
            f"{', cuda' if torch.cuda.is_available() else ''}."
        ) from error
    return device


def _precision(name: str, device: torch.device) -> Precision:
    if name == "auto":
        return "fp32"
    if name not in get_args(Precision):
        raise SidecarError(
            f"There is no precision {name!r}; choose auto, {', '.join(get_args(Precision))}."
        )
    return name  # type: ignore[return-value]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """transformers without its progress bars and warnings."""
    from transformers.utils import logging

    bars, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
