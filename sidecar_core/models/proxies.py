"""What a download says when the proxy in the environment is the reason that it failed."""

from __future__ import annotations

import re
from urllib.request import getproxies, proxy_bypass

_PACKAGES = {"Missing dependencies for SOCKS": "PySocks", "'socksio' package": "socksio"}
_UNKNOWN_KIND = ("Unable to determine SOCKS version", "Unknown scheme for proxy")
_OF_A_PROXY = ("ProxyError", "SOCKSHTTP", "SOCKSConnection")
_REFUSAL = re.compile(r"Tunnel connection failed: ([^')\n]+)|(0x0\d: [^')\n]+)|ProxyError: (.+)")
_FAILURE = re.compile(r"\[Errno -?\d+\] ([^')\n]+)|(timed out)")


def proxy_trouble(words: str, host: str | None = None) -> str | None:
    """Why the proxy let a download fail, or None if it was not the proxy.

    `words` is what the client said. A failure to connect to `host` is the proxy's, unless `host` is
    exempt. The answer names the proxy's host and port, never its user or password.
    """
    proxies = getproxies()
    url = proxies.get("https") or proxies.get("all") or proxies.get("http")
    if not url:
        return None
    kind, _, place = url.rpartition("://")  # not parsed: it may be no proper URL
    proxy = f"the proxy at {place.rpartition('@')[2].partition('/')[0]}"
    for mark, package in _PACKAGES.items():
        if mark in words:
            return f"{proxy} is a SOCKS proxy, which needs a package: `pip install {package}`"
    if any(mark in words for mark in _UNKNOWN_KIND):
        return f"{proxy} is of a kind that is not supported ({kind}://); try socks5h://"
    connecting = "ConnectError" in words or "ConnectTimeout" in words
    own = host is not None and connecting and not proxy_bypass(host)
    if not own and not any(mark in words for mark in _OF_A_PROXY):
        return None
    if failed := _FAILURE.search(words):
        return f"no connection through {proxy} ({failed[1] or failed[2]})"
    refused = _REFUSAL.search(words)
    detail = next(filter(None, refused.groups()), "") if refused else ""
    return f"{proxy} refused the connection" + (f" ({detail[:120]})" if detail else "")


def chain(error: BaseException | None) -> str:
    """The classes and messages of an error and its causes, one a line."""
    lines: list[str] = []
    while error is not None and len(lines) < 10:
        lines.append(f"{type(error).__name__}: {error}")
        error = error.__cause__ or error.__context__
    return "\n".join(lines)


def without_passwords(words: str) -> str:
    """`words` without the user and password of any URL in it."""
    return re.sub(r"//[^\s']*@", "//", words)
