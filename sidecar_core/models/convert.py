"""GGUF files turned, once, into safetensors in the form in which they are used.

transformers unpacks a GGUF file's blocks in Python, which takes up to a minute; the result is kept
in the cache with config, generation config and tokenizer, and later starts map it into memory.
What is kept equals transformers' own GGUF load, weight for weight.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from sidecar_core.errors import SidecarError
from sidecar_core.events import LoadProgress
from sidecar_core.models.cache import (
    Progress,
    built_folder,
    cache_dir,
    known_sha256,
    locked,
    note_sha256,
    require_space,
    sha256_of,
    storage_errors,
    write_text,
)
from sidecar_core.models.pair import Precision
from sidecar_core.models.sources import Weights

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

FORMAT = 1
"""Goes up whenever what is written changes; older entries are then made again."""

MARKER = "sidecar.json"

DTYPES: dict[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}


def converted_folder(weights: Weights, precision: Precision) -> Path:
    """Where the converted form of a GGUF file is kept."""
    stem = re.sub(r"[^A-Za-z0-9.-]+", "-", weights.name.partition(" ")[0]).lower()
    return cache_dir() / "models" / f"{stem}-{weights.digest[7:19]}-{precision}"


def is_converted(weights: Weights, precision: Precision) -> bool:
    """Whether the converted form is there, whole, and made from these weights."""
    folder = converted_folder(weights, precision)
    try:
        marker = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        if marker["format"] != FORMAT or marker["source"] != weights.digest:
            return False
        files: dict[str, dict[str, Any]] = marker["files"]
        return bool(files) and all(
            (folder / name).stat().st_size == file["size"]
            and known_sha256(folder / name) == file["sha256"]
            for name, file in files.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def convert(weights: Weights, precision: Precision, progress: Progress) -> Path:
    """The folder with the converted form of a GGUF file, made if it is not there or not whole.

    Raises SidecarError for a file that is no GGUF file or that transformers cannot read, and when
    the disk is too small.
    """
    folder = converted_folder(weights, precision)
    if is_converted(weights, precision):
        return folder
    with locked(folder.name, progress):
        if is_converted(weights, precision):  # another process was faster
            return folder
        doing = f"Converting {weights.path.name} to {precision}"
        progress(LoadProgress(f"{doing} (once, up to a minute)"))
        model, tokenizer = read_gguf(weights.path, DTYPES[precision])
        require_space(sum(p.nbytes for p in model.parameters()), doing)
        with storage_errors(doing), built_folder(folder) as draft:
            model.save_pretrained(draft, max_shard_size="100GB")
            tokenizer.save_pretrained(draft)
            del model
            files = {
                file.name: {"size": file.stat().st_size, "sha256": sha256_of(file)}
                for file in sorted(draft.iterdir())
            }
            marker = {"format": FORMAT, "source": weights.digest, "files": files}
            write_text(draft / MARKER, json.dumps(marker, indent=1))
        for name, file in files.items():
            note_sha256(folder / name, str(file["sha256"]))
    return folder


def read_gguf(path: Path, dtype: torch.dtype) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """transformers' own load of a GGUF file, unpacked to `dtype`, ready to be saved."""
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils.quantization_config import GgufConfig

    if path.stat().st_size < 4 or path.open("rb").read(4) != b"GGUF":
        raise SidecarError(f"{path.name} is not a GGUF file; name a file that is.")
    try:
        with quiet():
            model = AutoModelForCausalLM.from_pretrained(
                path.parent,
                gguf_file=path.name,
                dtype=dtype,
                quantization_config=GgufConfig(dequantize=True),
                local_files_only=True,
            )
            tokenizer = AutoTokenizer.from_pretrained(
                path.parent, gguf_file=path.name, local_files_only=True
            )
    except MemoryError as error:
        raise SidecarError(f"There is not enough memory to unpack {path.name}.") from error
    except Exception as error:
        why = str(error).strip().partition("\n")[0][:160] or type(error).__name__
        raise SidecarError(
            f"{path.name} cannot be read ({why}); it is damaged or of a kind that transformers "
            "does not know. Fetch it again or take another file."
        ) from error
    model.hf_quantizer = None  # the weights are plain now; with the mark they could not be saved
    return model, tokenizer


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
