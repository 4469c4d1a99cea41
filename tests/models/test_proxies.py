"""Downloads behind a proxy: they work, or say why not. Real clients, proxies on this machine."""

from __future__ import annotations

import functools
import http.server
import os
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest

from sidecar_core.errors import SidecarError
from sidecar_core.models import wheels
from sidecar_core.models.proxies import chain, proxy_trouble, without_passwords
from tests.server.networks import http_answer, serving, socks_refuses, socks_to

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
SECRET = "user:secret@"


@pytest.fixture
def behind(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No proxy variable yet, and a package index that only the proxy knows."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://index.invalid/simple")
    monkeypatch.setenv("PIP_TRUSTED_HOST", "index.invalid")
    monkeypatch.setenv("PIP_RETRIES", "1")
    return monkeypatch


def why_no_wheel(folder: Path) -> str:
    with pytest.raises(SidecarError) as caught:
        wheels._pip_download("foo==1", folder / "wheel", lambda: None)
    return str(caught.value)


def why_no_model(home: Path, proxy: str, before: str = "") -> str:
    """What `sources.resolve` says in a process of its own, since the Hub's client is kept."""
    code = f"""
{before}
from sidecar_core.errors import SidecarError
from sidecar_core.models.sources import _hub_snapshot
try:
    _hub_snapshot("example/none", lambda _: None)
except SidecarError as error:
    print(error)
"""
    env = {name: value for name, value in os.environ.items() if "HF_" not in name}
    env |= {"ALL_PROXY": proxy, "HF_HOME": str(home), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout, done.stderr
    return done.stdout.strip()


def test_pip_downloads_a_wheel_through_a_socks_proxy(
    behind: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    site = tmp_path / "simple" / "foo"
    site.mkdir(parents=True)
    name = "foo-1-py3-none-any.whl"
    with zipfile.ZipFile(site / name, "w") as wheel:
        wheel.writestr("foo-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: foo\nVersion: 1\n")
        wheel.writestr("foo-1.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        wheel.writestr("foo-1.dist-info/RECORD", "")
    (site / "index.html").write_text(f'<!DOCTYPE html><a href="{name}">{name}</a>')
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as index:
        threading.Thread(target=index.serve_forever, daemon=True).start()
        with serving(socks_to(index.server_port)) as proxy:
            behind.setenv("ALL_PROXY", f"socks5h://{proxy.address}")
            wheels._pip_download("foo==1", tmp_path / "wheel", lambda: None)
            assert proxy.asked
        index.shutdown()
    assert (tmp_path / "wheel" / name).is_file()


@pytest.mark.parametrize(
    ("kind", "answer", "reason"),
    [
        ("socks5h", socks_refuses, "not allowed by ruleset"),
        ("http", http_answer("403 Forbidden"), "403 Forbidden"),
    ],
)
def test_a_proxy_that_refuses_is_named_without_its_password(
    behind: pytest.MonkeyPatch, tmp_path: Path, kind: str, answer: Any, reason: str
) -> None:
    behind.setenv("PIP_INDEX_URL", "https://index.invalid/simple")
    with serving(answer) as proxy:
        behind.setenv("ALL_PROXY", f"{kind}://{SECRET}{proxy.address}")
        said = why_no_wheel(tmp_path)
    assert f"the proxy at {proxy.address} refused the connection" in said
    assert reason in said
    assert "secret" not in said
    assert "\n" not in said


def test_a_socks_kind_that_pip_does_not_know_is_named(
    behind: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    behind.setenv("ALL_PROXY", f"socks://{SECRET}127.0.0.1:9")
    said = why_no_wheel(tmp_path)
    assert "the proxy at 127.0.0.1:9 is of a kind that is not supported (socks://)" in said
    assert "secret" not in said


def test_the_hub_behind_a_proxy_says_the_reason(behind: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with serving(http_answer("403 Forbidden")) as proxy:
        said = why_no_model(tmp_path, f"http://{SECRET}{proxy.address}")
    assert f"the proxy at {proxy.address} refused the connection (403 Forbidden)" in said
    assert "secret" not in said


def test_the_hub_without_socksio_says_what_to_install(
    behind: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    missing = "import sys; sys.modules['socksio'] = None"
    said = why_no_model(tmp_path, f"socks5://{SECRET}127.0.0.1:9", missing)
    assert "the proxy at 127.0.0.1:9 is a SOCKS proxy" in said
    assert "pip install socksio" in said
    assert "secret" not in said


def test_pip_without_pysocks_says_what_to_install(behind: pytest.MonkeyPatch) -> None:
    behind.setenv("ALL_PROXY", f"socks5://{SECRET}127.0.0.1:9")
    said = "pip._vendor.requests.exceptions.InvalidSchema: Missing dependencies for SOCKS support."
    assert "pip install PySocks" in wheels._why_pip_failed("foo==1", said)


def test_without_a_proxy_or_past_it_the_proxy_is_not_blamed(behind: pytest.MonkeyPatch) -> None:
    refused = "ConnectError: [Errno 111] Connection refused"
    assert proxy_trouble(refused, "huggingface.co") is None
    behind.setenv("HTTPS_PROXY", "127.0.0.1:9")
    assert proxy_trouble(refused, "huggingface.co") == (
        "no connection through the proxy at 127.0.0.1:9 (Connection refused)"
    )
    behind.setenv("NO_PROXY", "huggingface.co")
    assert proxy_trouble(refused, "huggingface.co") is None
    assert proxy_trouble("ERROR: No matching distribution found for foo==1") is None
    assert chain(None) == ""


def test_a_reason_has_no_password() -> None:
    said = "ERROR: 404 for https://user:secret@index.invalid/simple and socks5://a:b@c:1"
    assert without_passwords(said) == (
        "ERROR: 404 for https://index.invalid/simple and socks5://c:1"
    )


@pytest.mark.parametrize("url", ["http://user:se/cret@[::1", "user:se/cret@[::1/"])
def test_a_proxy_that_is_no_proper_url_is_named_without_its_password(
    behind: pytest.MonkeyPatch, url: str
) -> None:
    behind.setenv("ALL_PROXY", url)
    said = proxy_trouble("ProxyError: 403 Forbidden")
    assert said == "the proxy at [::1 refused the connection (403 Forbidden)"
    assert without_passwords(f"Invalid proxy URL //{url}") == "Invalid proxy URL //[::1" + (
        "/" if url.endswith("/") else ""
    )
