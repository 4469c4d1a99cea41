"""Lets Gradio start behind a proxy and at an IPv6 address.

Before `launch()` returns, Gradio asks its own server whether it answers. It takes the proxy for
this from the environment, and fails if the proxy does not answer, if its kind is unknown or if a
package for it is missing, even when NO_PROXY exempts this machine. And it probes the port at an
IPv4 address only. So three of its modules get replacements for what they import.
"""

from __future__ import annotations

import importlib
import socket
from typing import Any

import httpx

from sidecar_core.server.network import url_host

MODULES = ("blocks", "networking", "http_server", "routes", "route_utils")
"""Those of Gradio."""


def prepare(host: str, port: int) -> None:
    """To be called before `launch()`, for the address that will be served; `check_address` must
    have found it free."""
    modules: Any = {name: importlib.import_module(f"gradio.{name}") for name in MODULES}
    modules["blocks"].httpx = modules["networking"].httpx = _Direct(host, port)
    modules["http_server"].socket = _WithoutProbe()
    modules["routes"].CustomCORSMiddleware = _knowing_ipv6(modules["route_utils"])


class _Direct:
    """Replaces the module `httpx`: what is asked of our own server goes there without a proxy."""

    def __init__(self, host: str, port: int) -> None:
        name = "localhost" if host == "0.0.0.0" else url_host(host)  # noqa: S104  (as Gradio does)
        self._own = f"http://{name}:{port}/"

    def __getattr__(self, name: str) -> Any:
        return getattr(httpx, name)

    def get(self, url: str, **options: Any) -> httpx.Response:
        return httpx.get(url, trust_env=not self._is_own(url), **options)

    def head(self, url: str, **options: Any) -> httpx.Response:
        return httpx.head(url, trust_env=not self._is_own(url), **options)

    def _is_own(self, url: str) -> bool:
        return url.startswith(self._own)


class _Socket(socket.socket):
    def bind(self, address: Any) -> None:
        """Does nothing."""


class _WithoutProbe:
    """Replaces the module `socket`: binding succeeds, since the address was found free already."""

    def __getattr__(self, name: str) -> Any:
        return getattr(socket, name)

    def socket(self) -> _Socket:
        return _Socket()


def _knowing_ipv6(route_utils: Any) -> type:
    """Gradio's rule for other sites, which may not read what this machine serves to itself; ::1 is
    a name of this machine too."""

    class Cors(route_utils.CustomCORSMiddleware):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.localhost_aliases.append("::1")

    return Cors
