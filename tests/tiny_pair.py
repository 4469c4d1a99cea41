"""A whole pair of tiny random models with a tokenizer made on the spot: an engine in a second."""

from __future__ import annotations

import dataclasses

from sidecar_core.decoding.engine import Engine
from sidecar_core.models.kernels.calibration import UNKNOWN
from sidecar_core.models.pair import Pair
from sidecar_core.settings import Precision
from tests.tiny import tiny_model
from tests.toy_tokenizers import toy_tokenizer


def tiny_engine(precision: Precision = "fp32") -> Engine:
    """Text from it is noise, but all that the engine does to real models it does to these."""
    tokenizer = toy_tokenizer()
    end = frozenset([tokenizer.eos_token_id])
    width = len(tokenizer)
    target, draft = (tiny_model(seed, vocab=width, eos=end, precision=precision) for seed in (0, 1))
    cheap = dataclasses.replace(UNKNOWN, seconds=tuple(0.3 * s for s in UNKNOWN.seconds))
    draft = dataclasses.replace(draft, calibration=cheap)
    return Engine(Pair("tiny", target, draft, tokenizer))
