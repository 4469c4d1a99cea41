"""The process that converts one model: `python -m sidecar_core.models.convert_worker FORM JOB`.

FORM is a precision and JOB the weights as JSON (name, path, digest). Standard output carries one
JSON object a line: progress, or at last an error to show. What nobody foresaw goes to standard
error. Started by `convert`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from safetensors import SafetensorError

from sidecar_core.errors import SidecarError, first_line
from sidecar_core.events import LoadProgress
from sidecar_core.models import int8_store
from sidecar_core.models.cache import (
    Progress,
    built_folder,
    locked,
    note_sha256,
    require_space,
    sha256_of,
    storage_errors,
    write_text,
)
from sidecar_core.models.convert import FORMAT, MARKER, converted_folder, is_converted
from sidecar_core.models.sources import Weights
from sidecar_core.settings import Precision

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

DTYPES: dict[Precision, torch.dtype] = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "int8": torch.float32,
}
"""What the weights are read as."""


def work(weights: Weights, precision: Precision, progress: Progress) -> None:
    """Puts the converted form into its place in the cache. Raises SidecarError."""
    folder = converted_folder(weights, precision)
    with locked(folder.name, progress):
        if is_converted(weights, precision):  # another process was faster
            return
        doing = f"Converting {weights.name} to {precision}"
        bars = _Bars(lambda done, total: progress(LoadProgress(doing, done, total)))
        with contextlib.redirect_stderr(bars):
            model, tokenizer = read(weights.path, DTYPES[precision])
        progress(LoadProgress(f"Writing {weights.name} in {precision}"))
        share = 0.3 if precision == "int8" else 1.0
        require_space(int(share * sum(p.nbytes for p in model.parameters())), doing)
        with storage_errors(doing), _os_errors(), built_folder(folder) as draft:
            if precision == "int8":
                int8_store.save(model, draft)
            else:
                model.save_pretrained(draft, max_shard_size="100GB")
            tokenizer.save_pretrained(draft)
            files = {
                file.name: {"size": file.stat().st_size, "sha256": sha256_of(file)}
                for file in sorted(draft.iterdir())
            }
            marker = {"format": FORMAT, "source": weights.digest, "files": files}
            write_text(draft / MARKER, json.dumps(marker, indent=1))
        for name, file in files.items():
            note_sha256(folder / name, str(file["sha256"]))


@contextlib.contextmanager
def _os_errors() -> Iterator[None]:
    """safetensors tells of a full disk in a class of its own, which is no OSError."""
    try:
        yield
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error


def read(path: Path, dtype: torch.dtype) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """transformers' own load of a GGUF file or a folder, as `dtype`, ready to be saved."""
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils.quantization_config import GgufConfig

    folder, file = (path.parent, {"gguf_file": path.name}) if path.is_file() else (path, {})
    how = (
        {"quantization_config": GgufConfig(dequantize=True)} if file else {"use_safetensors": True}
    )
    options = {"local_files_only": True, "trust_remote_code": False, **file}
    try:
        model, found = AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, output_loading_info=True, **options, **how
        )
        tokenizer = AutoTokenizer.from_pretrained(folder, **options)
    except MemoryError as error:
        raise SidecarError(
            f"There is not enough memory to unpack {path.name}; use a smaller pair."
        ) from error
    except Exception as error:
        why = first_line(error)
        raise SidecarError(
            f"{path.name} cannot be read ({why}); it is damaged or of a kind that transformers "
            "does not know. Fetch it again or use another file."
        ) from error
    if lacking := sorted(found["missing_keys"]):  # transformers would have made them up
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise SidecarError(f"{path.name} lacks {lacking[0]}{more}; fetch it again.")
    model.hf_quantizer = None  # the weights are plain now; with the mark they could not be saved
    return model, tokenizer


class _Bars(io.TextIOBase):
    """Takes the progress bars that libraries draw on standard error and tells their counts."""

    _COUNT = re.compile(r"\| *(\d+)/(\d+) \[")

    def __init__(self, tell: Callable[[int, int], None]) -> None:
        self._tell = tell

    def write(self, text: str) -> int:
        for done, total in self._COUNT.findall(text)[-1:]:
            self._tell(int(done), int(total))
        return len(text)


def main(precision: str, job: str) -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not mix with the protocol

    def say(values: dict[str, Any]) -> None:
        print(json.dumps(values), file=out, flush=True)

    told = json.loads(job)
    weights = Weights(told["name"], Path(told["path"]), told["digest"])
    try:
        work(weights, cast(Precision, precision), lambda e: say(dataclasses.asdict(e)))
    except SidecarError as error:
        say({"error": str(error)})
    except Exception as error:  # the last line of standard error is what `convert` tells
        sys.exit(f"{type(error).__name__}: {first_line(error)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
