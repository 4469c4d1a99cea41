"""The address that the page is served at: free before the server starts, and never behind a proxy.

Nothing here imports Gradio.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import getproxies_environment

from sidecar_core.errors import SidecarError

THIS_MACHINE = ("127.0.0.1", "localhost", "::1")


def url_host(host: str) -> str:
    """`host` as it stands in a URL: an IPv6 address in brackets, anything else as it is."""
    host = bare(host)
    return f"[{host}]" if ":" in host else host


def bare(host: str) -> str:
    """`host` without the brackets of an IPv6 address."""
    return host.removeprefix("[").removesuffix("]")


def check_address(host: str, port: int) -> None:
    """Raises SidecarError if nothing can listen at that address, IPv4 or IPv6.

    A name may have several addresses; the server listens at all of them. Gradio would find out late
    and report it less clearly.
    """
    try:
        if "%" in host:
            raise ValueError("an address with a zone (%) cannot be part of a URL")
        for family, kind, protocol, _, address in socket.getaddrinfo(
            bare(host), port, type=socket.SOCK_STREAM
        ):
            with socket.socket(family, kind, protocol) as probe:
                if os.name == "posix":  # a port that another server has just closed is free
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:  # as the server does: "::" is not 0.0.0.0 as well
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind(address)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise SidecarError(
            f"Cannot listen on {host}, port {port}: {why}. Choose others with --host and --port."
        ) from error


def bypass_proxies(host: str) -> None:
    """Exempt this machine and `host` from the proxies in the environment, if there are any.

    For what Gradio asks itself, for example when it is an MCP server. Without a proxy in the
    environment it stays as it is, since some systems have their proxies elsewhere and read these
    only if NO_PROXY is not set.
    """
    proxies = getproxies_environment()
    exempt = [part.strip() for part in proxies.pop("no", "").split(",") if part.strip()]
    if proxies and "*" not in exempt:
        exempt += [name for name in (*THIS_MACHINE, bare(host)) if name not in exempt]
        os.environ["NO_PROXY"] = os.environ["no_proxy"] = ",".join(exempt)


@contextmanager
def without_proxies() -> Iterator[None]:
    """Ignore the proxies in the environment, for importing Gradio.

    The import makes an HTTP client, which looks at every proxy and fails on a kind that it does not
    know, such as the `socks://` of desktops. No other thread may run yet.
    """
    names = ("NO_PROXY", "no_proxy")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "*"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
