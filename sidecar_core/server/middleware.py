"""What stands between the server and the page: headers for the answers, and a gate.

Both work on ASGI messages, so that streams stay streams.
"""

from __future__ import annotations

from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_SECURITY_POLICY = (
    "default-src 'self'",
    # Gradio's page holds inline scripts and styles, and makes functions of its handlers' text.
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
"""Nothing is taken from, or sent to, any other host."""

FEATURES = (
    "accelerometer", "camera", "display-capture", "geolocation", "gyroscope", "magnetometer",
    "microphone", "midi", "payment", "usb",
)  # fmt: skip
"""What a browser offers and this page never uses."""


ASSETS = "/assets/"
"""Gradio's scripts and styles; their names change with what is in them."""

FOR_GOOD = "public, max-age=31536000, immutable"


def security_headers(frame_ancestors: str) -> dict[str, str]:
    """Headers of every answer; `frame_ancestors` are the sites that may frame the page."""
    policy = [*CONTENT_SECURITY_POLICY, f"frame-ancestors {frame_ancestors}"]
    return {
        "Content-Security-Policy": "; ".join(policy),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Permissions-Policy": ", ".join(f"{feature}=()" for feature in FEATURES),
    }


class Headers:
    """Adds headers to every answer as it begins, and to the page's parts that a browser need not
    ask for them again."""

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
    """With a password: lets only those in who logged in, and everybody to what the login needs.

    Gradio itself asks for the login at most of its routes, but not at those that cancel a run or
    hold a connection open. The tokens are those that its login gave out.
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
    """Whether the request brings a token of Gradio's login."""
    app: Any = scope["app"]
    cookies = Request({**scope, "type": "http"}).cookies
    names = (f"access-token-{app.cookie_id}", f"access-token-unsecure-{app.cookie_id}")
    return any(cookies.get(name) in app.tokens for name in names)
