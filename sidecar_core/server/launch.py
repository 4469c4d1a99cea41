"""The server around the page: health check, metrics, headers, login.

`server_arguments` turns options into arguments of Gradio's `launch()`. `/healthz` is always open;
if there is a password, `/metrics` requires it by HTTP Basic.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Sequence
from typing import Any

from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from sidecar_core import __version__
from sidecar_core.host.model_host import ModelHost
from sidecar_core.host.monitor import Monitor, Observer
from sidecar_core.server import logs
from sidecar_core.server.middleware import Gate, Headers, security_headers
from sidecar_core.server.network import url_host
from sidecar_core.server.options import Options

NO_DOCS = {"docs_url": None, "redoc_url": None, "openapi_url": None}
"""FastAPI's own pages are off: they load scripts from other hosts and ignore the password."""


def server_arguments(host: ModelHost, options: Options) -> dict[str, Any]:
    """Arguments of Gradio's `launch()` for the server; the page adds its own. From now on the runs
    of `host` are counted and logged."""
    observers: list[Observer] = [logs.RunLines()]
    routes = [Route("/healthz", Health(host, options))]
    if options.metrics:
        from sidecar_core.server.metrics import CONTENT_TYPE, Metrics

        metrics = Metrics(host.queue.waiting)
        observers.append(metrics)

        def figures(request: Request) -> Response:
            if options.login and not _knows(request, options.login):
                return Response(status_code=401, headers={"WWW-Authenticate": "Basic"})
            return Response(metrics.text(), media_type=CONTENT_TYPE)

        routes.append(Route("/metrics", figures))
    host.monitor = Monitor(*observers)
    middleware = [
        Middleware(Headers, headers=security_headers(options.frame_ancestors)),
        Middleware(GZipMiddleware),  # the page is 240 kB of text; event streams are not compressed
    ]
    if options.login:
        middleware.append(Middleware(Gate))
    return {
        "server_name": url_host(options.host),
        "server_port": options.port,
        "auth": options.login,
        "app_kwargs": {"routes": routes, "middleware": middleware, **NO_DOCS},
    }


class Health:
    """Reports the state of the models: 200 while they load and once they are ready, 503 after
    loading failed."""

    def __init__(self, host: ModelHost, options: Options) -> None:
        self._host, self._options = host, options

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = self._host.status().state
        pair = getattr(self._host.engine(), "pair", None)
        body = {
            "status": state,
            "version": __version__,
            "pair": pair.name if pair else self._options.pair,
            "precision": pair.target.precision if pair else self._options.precision,
        }
        response = JSONResponse(body, 503 if state == "failed" else 200)
        response.headers["Cache-Control"] = "no-store"
        await response(scope, receive, send)


def _knows(request: Request, login: Sequence[str]) -> bool:
    """Whether the request has the right user name and password (HTTP Basic)."""
    scheme, _, words = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return False
    try:
        given = base64.b64decode(words, validate=True)
    except (binascii.Error, ValueError):
        return False
    return hmac.compare_digest(given, ":".join(login).encode())
