"""The same GGUF files in llama.cpp, by the package xllamacpp: plain, and with the draft."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from sidecar_core.errors import SidecarError
from sidecar_core.models.cache import Progress
from sidecar_core.models.sources import choose, resolve
from sidecar_core.settings import COMPARED_GAMMA

LACKING = (
    "--llama-cpp needs the package xllamacpp, which is not installed; install it with "
    '`pip install -e ".[llama-cpp]"`.'
)

CONTEXT = 2048
"""Tokens of a contestant's context."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What llama.cpp tells of one greedy completion: tokens written, seconds for them, and tokens
    of the prompt that were read now, with their seconds."""

    tokens: int
    seconds: float
    prompt_tokens: int
    prompt_seconds: float


def gguf_files(pair: str, progress: Progress) -> tuple[Path, Path]:
    """Target's and draft's file. Raises SidecarError for a pair that is not of GGUF files."""
    spec, _ = choose(pair)
    found = [resolve(model, progress) for model in (spec.target, spec.draft)]
    for weights in found:
        if not weights.is_gguf or weights.without_layers:
            raise SidecarError(
                f"--llama-cpp needs two GGUF files, but {weights.name} is not one; "
                "use --pair coder."
            )
    return found[0].path, found[1].path


class LlamaCpp:
    """A target in llama.cpp, alone or with a draft of up to `COMPARED_GAMMA` tokens a round, on as
    many threads as torch has. Raises SidecarError where xllamacpp is missing."""

    def __init__(self, target: Path, draft: Path | None = None) -> None:
        try:
            import xllamacpp
        except ImportError as error:
            raise SidecarError(LACKING) from error
        options: Any = xllamacpp.CommonParams()
        options.model.path = str(target)
        options.n_ctx, options.n_parallel, options.verbosity = CONTEXT, 1, 0
        options.cpuparams.n_threads = options.cpuparams_batch.n_threads = torch.get_num_threads()
        if draft is not None:
            kinds = xllamacpp.common_speculative_type
            options.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
            options.speculative.draft.mparams.path = str(draft)
            options.speculative.draft.n_max = COMPARED_GAMMA
        self._server: Any = xllamacpp.Server(options)

    def complete(self, prompt: Sequence[int], tokens: int) -> Completion:
        """Write so many tokens behind the prompt, whose prefix is kept from call to call."""
        asked = {
            "prompt": list(prompt),
            "n_predict": tokens,
            "temperature": 0,
            "cache_prompt": True,
            "ignore_eos": True,
        }
        answer = self._server.handle_completions(asked)
        try:
            told = answer["timings"]
        except (KeyError, TypeError) as error:
            raise SidecarError(f"llama.cpp gave no answer: {str(answer)[:200]}") from error
        return Completion(
            int(told["predicted_n"]),
            told["predicted_ms"] / 1e3,
            int(told["prompt_n"]),
            told["prompt_ms"] / 1e3,
        )
