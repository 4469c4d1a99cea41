"""A loaded model and a loaded pair: what `loading` hands to the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from sidecar_core.models.kernels.calibration import UNKNOWN, Calibration
from sidecar_core.settings import Precision as Precision

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """Weights ready to run.

    `network` is in eval mode and takes `input_ids`, `position_ids`, a 4-D bool `attention_mask`
    (True = attend), `cache` and `logits_to_keep`; its logits have `vocab_size` columns.
    `fingerprint` names weights and precision: equal fingerprints mean equal keys and values.
    `calibration` tells what this machine does with it.
    """

    name: str
    network: PreTrainedModel
    precision: Precision
    fingerprint: str
    eos_ids: frozenset[int]
    calibration: Calibration = UNKNOWN

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device

    @property
    def vocab_size(self) -> int:
        """Width of the logits."""
        return int(self.network.config.get_text_config().vocab_size)

    @property
    def max_positions(self) -> int:
        """Positions the model was made for, in tokens."""
        return int(self.network.config.get_text_config().max_position_embeddings)

    @property
    def weight_bytes(self) -> int:
        """Bytes of all parameters and buffers, shared ones once."""
        tensors = [*self.network.parameters(), *self.network.buffers()]
        storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
        return sum(storages.values())


@dataclass(frozen=True, eq=False)
class Pair:
    """Target and draft with the tokenizer they share. `note` says what was chosen, and why."""

    name: str
    target: LoadedModel
    draft: LoadedModel
    tokenizer: PreTrainedTokenizerBase
    note: str = ""

    @property
    def vocab_size(self) -> int:
        """Width of the common vocabulary: the smaller of the two."""
        return min(self.target.vocab_size, self.draft.vocab_size)
