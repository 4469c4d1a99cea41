"""Networks as people have them: proxies in the environment, IPv6 addresses."""

from __future__ import annotations

import os
import re
from pathlib import Path

import httpx
import pytest

from sidecar_core.errors import SidecarError
from sidecar_core.server.network import (
    bypass_proxies,
    check_address,
    url_host,
    without_proxies,
)
from tests.served import free_port
from tests.server.networks import http_answer, listening, needs_ipv6, serving, socks_refuses
from tests.server.process import environment, running

VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture
def no_variables(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No proxy variable is set; what the test sets is put back."""
    for name in VARIABLES:
        for spelled in (name, name.lower()):
            monkeypatch.setenv(spelled, "")  # so that it is put back, whoever changes it
            monkeypatch.delenv(spelled)
    return monkeypatch


@pytest.mark.parametrize(
    "variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"]
)
@pytest.mark.parametrize("kind", ["http", "socks5"])
def test_httpx_asks_this_machine_without_the_proxy(
    no_variables: pytest.MonkeyPatch, variable: str, kind: str
) -> None:
    """The real client against a real proxy: it is never asked."""
    with serving(http_answer("200 OK")) as own, serving(socks_refuses) as proxy:
        no_variables.setenv(variable, f"{kind}://{proxy.address}")
        no_variables.setenv("NO_PROXY", "example.org")
        bypass_proxies("127.0.0.1")
        assert httpx.get(f"http://{own.address}/").status_code == 200
        assert (own.asked, proxy.asked) == (1, 0)
        assert os.environ["no_proxy"].startswith("example.org,")


@needs_ipv6
def test_httpx_asks_an_ipv6_address_without_the_proxy(no_variables: pytest.MonkeyPatch) -> None:
    no_variables.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    bypass_proxies("[::1]")
    with listening("::1") as server, pytest.raises(httpx.ReadTimeout):  # connected, not answered
        httpx.get(f"http://[::1]:{server.getsockname()[1]}/", timeout=0.5)


def test_the_exemptions_of_the_environment_stay(no_variables: pytest.MonkeyPatch) -> None:
    no_variables.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    no_variables.setenv("no_proxy", "intranet, ::1")
    bypass_proxies("10.1.2.3")
    assert os.environ["NO_PROXY"] == "intranet,::1,127.0.0.1,localhost,10.1.2.3"
    no_variables.setenv("no_proxy", "*")
    bypass_proxies("10.1.2.3")
    assert os.environ["no_proxy"] == "*"


def test_an_environment_without_proxies_stays_as_it_is(no_variables: pytest.MonkeyPatch) -> None:
    before = dict(os.environ)
    bypass_proxies("::1")
    with without_proxies():
        assert os.environ["no_proxy"] == "*"
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    ("host", "shown"),
    [("::1", "[::1]"), ("[::1]", "[::1]"), ("::", "[::]"), ("0.0.0.0", "0.0.0.0"), ("box", "box")],
)
def test_an_ipv6_address_has_brackets_in_a_url(host: str, shown: str) -> None:
    assert url_host(host) == shown
    assert httpx.URL(f"http://{url_host(host)}:7860/").port == 7860


@needs_ipv6
@pytest.mark.parametrize("host", ["::1", "[::1]", "::"])
def test_a_taken_ipv6_port_is_found(host: str) -> None:
    with listening("::1") as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SidecarError, match=re.escape(f"{host}, port {port}: Address already")):
            check_address(host, port)


@needs_ipv6
def test_a_port_that_is_taken_at_ipv4_alone_is_free_at_ipv6() -> None:
    with listening() as taken:
        check_address("::1", taken.getsockname()[1])
        check_address("::", taken.getsockname()[1])


def test_an_address_with_a_zone_is_refused_with_the_reason() -> None:
    with pytest.raises(SidecarError, match="zone"):
        check_address("fe80::1%lo", free_port())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("host", "proxies"),
    [
        pytest.param(
            "127.0.0.1",
            {"HTTP_PROXY": "http://{}", "all_proxy": "socks5://{}"},
            marks=pytest.mark.slow,
        ),
        pytest.param("::1", {"ALL_PROXY": "socks://{}"}, marks=needs_ipv6),
        pytest.param(
            "::",
            {"http_proxy": "http://user:secret@{}"},
            marks=[needs_ipv6, pytest.mark.slow],
        ),
    ],
)
def test_the_app_starts_whatever_the_proxy_and_the_address(
    tmp_path: Path, host: str, proxies: dict[str, str]
) -> None:
    """`socks://` is what desktops set, and what HTTP clients do not know. The port is taken at
    127.0.0.1 if the app is to listen at an IPv6 address."""
    with serving(socks_refuses) as proxy, listening() as taken:
        port = taken.getsockname()[1] if ":" in host else free_port()
        names = {name: words.format(proxy.address) for name, words in proxies.items()}
        env = environment(tmp_path, GRADIO_SERVER_NAME=host, SIDECAR_PAIR="coder", **names)
        for name in {"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} - names.keys():
            del env[name]
        asked_at = "127.0.0.1" if host == "127.0.0.1" else "[::1]"
        with running(tmp_path / "log", port, env, host=asked_at) as app:
            app.until("failed")  # no weights can be had here
            shown = re.findall(r"Running on local URL: +(\S+)", app.until_said("Running on"))
            assert shown == [f"http://{url_host(host)}:{port}"]
            assert httpx.get(app.url, trust_env=False).status_code == 200
            elsewhere = _allowed_origin(app.url, "https://example.org")
            assert (elsewhere, _allowed_origin(app.url, app.url)) == (None, app.url)
        assert "Traceback" not in app.output
        assert proxy.asked == 0


def _allowed_origin(url: str, origin: str) -> str | None:
    """The site that may read the answer to a request from `origin`."""
    answer = httpx.get(f"{url}config", headers={"Origin": origin}, trust_env=False)
    return answer.headers.get("Access-Control-Allow-Origin")
