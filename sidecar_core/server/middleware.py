"""ASGI middleware between the server and the page: response headers, and a gate for logins.

Both work message by message, so that streams stay streams.
"""

from __future__ import annotations

from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_SECURITY_POLICY = (
    "default-src 'self'",
    # Gradio's page contains inline scripts and styles, and compiles handlers from text.
    "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "media-src 'self' data: blob:",
    "font-src 'self' data:",
    "worker-src 'self' blob:",
    "object-src 'none'",
    "base-uri 'self'",
    "form-action 'self'",
)
"""Nothing is loaded from or sent to other hosts."""

FEATURES = (
    "accelerometer", "camera", "display-capture", "geolocation", "gyroscope", "magnetometer",
    "microphone", "midi", "payment", "usb",
)  # fmt: skip
"""Browser features that this page never uses."""

ASSETS = "/assets/"
"""Gradio's scripts and styles; their names change with their content."""

FOR_GOOD = "public, max-age=31536000, immutable"


def security_headers(frame_ancestors: str) -> dict[str, str]:
    """Headers of every response; `frame_ancestors` are the sites that may frame the page."""
    policy = [*CONTENT_SECURITY_POLICY, f"frame-ancestors {frame_ancestors}"]
    return {
        "Content-Security-Policy": "; ".join(policy),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Permissions-Policy": ", ".join(f"{feature}=()" for feature in FEATURES),
    }


class Headers:
    """Adds `headers` to every response, and a caching header to Gradio's scripts and styles."""

    def __init__(self, app: ASGIApp, headers: dict[str, str]) -> None:
        self._app, self._headers = app, headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(self._headers)
                if scope["path"].startswith(ASSETS) and message["status"] == 200:
                    headers["Cache-Control"] = FOR_GOOD
            await send(message)

        await self._app(scope, receive, with_headers)


class Gate:
    """If there is a password: rejects requests without a login, except for what the login needs.

    Gradio itself protects most of its routes, but not those that cancel a run or hold a connection
    open. The gate accepts the tokens that Gradio's login issues.
    """

    PATHS = frozenset(
        {
            *("/", "/login", "/login/", "/logout", "/healthz", "/metrics", "/theme.css"),
            *("/favicon.ico", "/robots.txt", "/manifest.json", "/pwa_icon"),
            "/gradio_api/startup-events",
        }
    )
    FOLDERS = ("/static/", ASSETS, "/svelte/", "/pwa_icon/")

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or _is_open(scope["path"]) or _is_in(scope):
            await self._app(scope, receive, send)
        else:
            await JSONResponse({"error": "Not authenticated"}, 401)(scope, receive, send)


def _is_open(path: str) -> bool:
    return path in Gate.PATHS or path.startswith(Gate.FOLDERS)


def _is_in(scope: Scope) -> bool:
    """Whether the request has a token of Gradio's login."""
    app: Any = scope["app"]
    cookies = Request({**scope, "type": "http"}).cookies
    names = (f"access-token-{app.cookie_id}", f"access-token-unsecure-{app.cookie_id}")
    return any(cookies.get(name) in app.tokens for name in names)
