"""The server around the page: health, figures, headers, login. No browser."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from gradio_client import Client
from starlette.routing import Route

from sidecar_core import __version__
from sidecar_core.errors import SidecarError
from sidecar_core.host.model_host import ModelHost
from sidecar_core.page.controls import values_of
from sidecar_core.report import RunReport
from sidecar_core.server import logs
from sidecar_core.server.launch import Health
from sidecar_core.server.middleware import security_headers
from sidecar_core.server.options import parse
from sidecar_core.settings import RunSettings
from tests.page.test_run import until
from tests.runs import ScriptedEngine
from tests.served import Served, options

LOGIN = ("visitor", "open sesame")


@pytest.fixture(scope="module")
def counting() -> Iterator[Served]:
    served = Served(options(metrics=True))
    yield served
    served.demo.close(verbose=False)


@pytest.fixture(scope="module")
def locked() -> Iterator[Served]:
    served = Served(options(metrics=True, password=LOGIN[1]))
    yield served
    served.demo.close(verbose=False)


def summarise(client: Client, article: str = "The plant closed.") -> Any:
    return client.predict(article, *values_of(RunSettings()), api_name="/run")


def routes(found: list[Any]) -> Iterator[Route]:
    for route in found:
        if hasattr(route, "original_router"):
            yield from routes(route.original_router.routes)
        else:
            yield route


def health(host: ModelHost) -> httpx.Response:
    app = Route("/healthz", Health(host, parse(["--pair", "coder"], {})))
    return httpx.Client(transport=Asgi(app), base_url="http://here").get("/healthz")


class Asgi(httpx.BaseTransport):
    """Asks an app in this process."""

    def __init__(self, app: Any) -> None:
        from starlette.applications import Starlette
        from starlette.testclient import TestClient

        self.client = TestClient(Starlette(routes=[app]))

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self.client.request(request.method, str(request.url))
        return httpx.Response(answer.status_code, content=answer.content, headers=answer.headers)


def test_health_is_good_while_models_load_and_bad_when_they_cannot_be_loaded() -> None:
    there = threading.Event()

    def load(progress: Any) -> Any:
        there.wait(20)
        raise SidecarError("No weights.")

    host = ModelHost(load)
    host.start()
    answer = health(host)
    assert answer.status_code == 200
    assert answer.json() == {
        "status": "loading", "version": __version__, "pair": "coder", "precision": "auto",
    }  # fmt: skip
    there.set()
    until(lambda: host.status().state == "failed")
    answer = health(host)
    assert (answer.status_code, answer.json()["status"]) == (503, "failed")


def test_health_names_the_pair_that_was_loaded() -> None:
    from tests.tiny_pair import tiny_engine

    engine = tiny_engine()
    host = ModelHost(lambda progress: (engine, "tiny"))
    host.start()
    until(lambda: host.status().state == "ready")
    found = health(host).json()
    assert (found["status"], found["pair"]) == ("ready", engine.pair.name)
    assert found["precision"] == engine.pair.target.precision


def test_the_served_app_answers_its_health(counting: Served) -> None:
    until(lambda: counting.host.status().state == "ready")
    answer = httpx.get(counting.url + "healthz")
    assert answer.json()["status"] == "ready"
    assert answer.headers["Cache-Control"] == "no-store"


def test_the_page_travels_compressed(counting: Served) -> None:
    with httpx.stream("GET", counting.url) as answer:
        travelled = sum(map(len, answer.iter_raw()))
    assert answer.headers["Content-Encoding"] == "gzip"
    assert 5 * travelled < len(httpx.get(counting.url).content)


def test_what_the_queue_tells_is_not_held_back_to_be_compressed(counting: Served) -> None:
    address = counting.url + "gradio_api/heartbeat/abc"
    with httpx.stream("GET", address, timeout=20) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        assert "Content-Encoding" not in answer.headers
        assert next(answer.iter_raw())


def test_a_browser_keeps_what_never_changes_and_nothing_else(counting: Served) -> None:
    page = httpx.get(counting.url)
    (asset, *_) = re.findall(r"assets/[\w-]+\.js", page.text)
    assert "immutable" in httpx.get(counting.url + asset).headers["Cache-Control"]
    missing = httpx.get(counting.url + "assets/none.js")
    assert missing.status_code == 404
    for answer in (page, missing, httpx.get(counting.url + "config")):
        assert "immutable" not in answer.headers.get("Cache-Control", "")


def test_there_are_no_figures_unless_asked_for(served: Served) -> None:
    assert httpx.get(served.url + "metrics").status_code == 404


def test_a_run_shows_in_the_figures(counting: Served) -> None:
    def finished() -> float:
        text = httpx.get(counting.url + "metrics").text
        return float(
            re.findall(r'runs_ended_total\{kind="run",outcome="finished"\} (\S+)', text)[0]
        )

    before = finished()
    summarise(Client(counting.url, verbose=False))
    assert finished() == before + 1


def test_figures_name_nothing_that_a_visitor_wrote(counting: Served) -> None:
    summarise(Client(counting.url, verbose=False), "Zanzibar pelicans settled.")
    text = httpx.get(counting.url + "metrics").text
    assert "Zanzibar" not in text
    assert "127.0.0.1" not in text


@pytest.mark.parametrize("path", ["", "healthz", "metrics", "theme.css", "gradio_api/info"])
def test_every_answer_has_the_headers(counting: Served, path: str) -> None:
    answer = httpx.get(counting.url + path)
    assert answer.status_code == 200
    for name, value in security_headers("'self' https://huggingface.co").items():
        assert answer.headers[name] == value


@pytest.mark.parametrize("path", ["docs", "redoc", "openapi.json"])
def test_pages_that_load_scripts_from_elsewhere_are_not_served(counting: Served, path: str) -> None:
    assert httpx.get(counting.url + path).status_code == 404


def test_the_policy_names_no_other_host() -> None:
    policy = security_headers("'self'")["Content-Security-Policy"]
    directives = dict(part.split(" ", 1) for part in policy.split("; "))
    assert directives["default-src"] == "'self'"
    own = {"'self'", "'none'", "'unsafe-inline'", "'unsafe-eval'", "data:", "blob:"}
    assert {source for found in directives.values() for source in found.split()} <= own


def test_sites_that_may_frame_the_page_can_be_chosen() -> None:
    policy = security_headers("https://example.org")["Content-Security-Policy"]
    assert policy.endswith("; frame-ancestors https://example.org")


def test_streams_are_not_held_back_by_the_headers(counting: Served) -> None:
    counting.engine.pause = 0.05
    job = Client(counting.url, verbose=False).submit(
        "The plant closed.", *values_of(RunSettings()), api_name="/run"
    )
    assert len(list(job)) > 3
    counting.engine.pause = 0.0


def test_without_the_password_nothing_but_login_and_health_is_answered(locked: Served) -> None:
    """Every route of the app is asked. What the login page itself is made of stays open."""
    refused, answered = 0, set()
    for route in routes(locked.demo.app.routes):
        path = re.sub(r"{[^}]*}", "x", route.path)
        for method in route.methods or {"GET"}:
            answer = httpx.request(method, locked.url.rstrip("/") + path)
            refused += answer.status_code == 401
            if answer.is_success:
                answered.add(route.path)
    assert answered == {
        *("/", "/healthz", "/theme.css", "/favicon.ico", "/robots.txt", "/manifest.json"),
        "/gradio_api/startup-events",
    }
    assert refused > 60
    assert locked.engine.calls == 0


def test_the_page_without_the_password_is_a_login_without_any_content(locked: Served) -> None:
    page = httpx.get(locked.url).text
    assert '"auth_required":true' in page
    assert '"components":[]' in page
    assert "scenario-" not in page


@pytest.mark.parametrize("given", [None, ("visitor", "wrong"), ("other", LOGIN[1])])
def test_a_client_needs_the_password(locked: Served, given: tuple[str, str] | None) -> None:
    with pytest.raises(Exception, match=r"(?i)auth|login|credentials"):
        summarise(Client(locked.url, verbose=False, auth=given))
    assert locked.engine.calls == 0


def test_a_token_that_the_login_never_gave_out_opens_nothing(locked: Served) -> None:
    made_up = {f"access-token-{locked.demo.app.cookie_id}": "made up"}
    for path in ("gradio_api/cancel", "gradio_api/queue/join"):
        answer = httpx.post(locked.url + path, json={}, cookies=made_up)
        assert answer.status_code == 401


def test_a_client_with_the_password_can_run(locked: Served) -> None:
    assert summarise(Client(locked.url, verbose=False, auth=LOGIN))[0]["kind"] == "done"


def test_figures_of_a_locked_app_need_the_password(locked: Served) -> None:
    url = locked.url + "metrics"
    assert httpx.get(url).status_code == 401
    assert httpx.get(url, auth=("visitor", "wrong")).status_code == 401
    assert httpx.get(url, headers={"Authorization": "Basic ???"}).status_code == 401
    assert httpx.get(url, auth=LOGIN).status_code == 200


def test_a_full_line_is_as_long_as_was_asked_for() -> None:
    host = ModelHost(lambda progress: (ScriptedEngine(), "scripted"), max_waiting=1)
    for _ in range(2):
        host.queue.enter()
    assert host.queue.waiting() == 1
    with pytest.raises(SidecarError, match=r"queue is full \(limit: 1\)"):
        host.queue.enter()


def test_a_call_that_lacks_values_is_told_without_a_word_of_them_here_or_in_the_log(
    counting: Served, capfd: pytest.CaptureFixture[str]
) -> None:
    logs.quiet_gradio()
    answer = httpx.post(
        f"{counting.url}gradio_api/call/summarise", json={"data": ["Zanzibar pelicans"]}, timeout=30
    )
    if answer.status_code == 200:
        event = answer.json()["event_id"]
        answer = httpx.get(f"{counting.url}gradio_api/call/summarise/{event}", timeout=30)
    assert "takes 10 values" in answer.text
    assert "Zanzibar" not in answer.text
    assert "Zanzibar" not in "".join(capfd.readouterr())


def test_a_handler_that_fails_is_written_down_without_its_message(
    counting: Served, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(self: RunReport) -> Any:
        raise ValueError("cannot write Zanzibar pelicans")

    monkeypatch.setattr(RunReport, "as_dict", breaks)
    for name in ("handlers", "level", "propagate"):  # put back at the end
        logger = logging.getLogger(logs.NAME)
        monkeypatch.setattr(logger, name, getattr(logger, name))
    logs.set_up("text")
    values = ["The plant closed.", "hashtags", True, 20, 0.0, 0, "", "", "summary", ""]
    asked = httpx.post(
        f"{counting.url}gradio_api/call/summarise", json={"data": values}, timeout=30
    )
    httpx.get(f"{counting.url}gradio_api/call/summarise/{asked.json()['event_id']}", timeout=30)
    written = "".join(capfd.readouterr())
    assert "A handler failed" in written
    assert "Zanzibar" not in written
