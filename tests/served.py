"""A browser, the page over a scripted engine, and the real app over real weights."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecar_core.examples import Example
from sidecar_core.host.model_host import ModelHost
from sidecar_core.page.looks import launch_arguments
from sidecar_core.page.page import build_demo
from sidecar_core.server.launch import server_arguments
from sidecar_core.server.options import Options, parse
from tests.hosts import host_of
from tests.runs import ScriptedEngine

ROOT = Path(__file__).resolve().parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
PATIENCE = 20_000
"""Milliseconds that the page may take for anything, over a scripted engine."""

REAL_PATIENCE = 300_000
"""The same over real weights, on a busy two-core machine."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def options(**changes: Any) -> Options:
    """What `app.py` is told: a free port, and these changes."""
    return dataclasses.replace(parse([], {}), port=free_port(), **changes)


@contextlib.contextmanager
def page_of(host: ModelHost, *arguments: Any, **launch: Any) -> Iterator[str]:
    """The address of the page over `host`; `arguments` are further ones of `build_demo`."""
    demo = build_demo(host, *arguments)
    try:
        _, url, _ = demo.launch(
            server_name="127.0.0.1",
            server_port=free_port(),
            prevent_thread_lock=True,
            quiet=True,
            **launch_arguments(),
            **launch,
        )
        yield url
    finally:
        demo.close(verbose=False)


SEEN = "try { localStorage.setItem('sidecar-tour', 'seen'); } catch {}"


class Served:
    """The page in this process, over a scripted engine that a test may change.

    `recordings` is the folder of those that it offers.
    """

    def __init__(self, options: Options, recordings: Path = ROOT / "assets" / "recordings") -> None:
        self.engine = ScriptedEngine()
        self.host = host = host_of(self.engine)
        examples = (
            Example("The plant", "The plant closed. The Broken Arrow line is gone.", "plant"),
            Example("Other", "Some other article.", "other"),
        )
        self.demo = build_demo(host, examples, recordings)
        _, self.url, _ = self.demo.launch(
            prevent_thread_lock=True,
            quiet=True,
            **launch_arguments(options.max_waiting),
            **server_arguments(host, options),
        )


@pytest.fixture(scope="session")
def _served() -> Iterator[Served]:
    served = Served(options())
    yield served
    served.demo.close()


@pytest.fixture
def served(_served: Served) -> Served:
    """The scripted page, its engine as new."""
    _served.engine.__init__()  # type: ignore[misc]
    _served.engine.pause = 0.01
    return _served


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium; the test is skipped where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser on the PATH; looked for {', '.join(BROWSERS)}")
    with sync_api.sync_playwright() as play:
        running = play.chromium.launch(executable_path=path, args=FLAGS)
        yield running
        running.close()


class Tab:
    """A visitor of their own: one page in one context, and what its console said. On a `first`
    visit the tour begins by itself."""

    def __init__(
        self,
        browser: Any,
        url: str,
        width: int,
        height: int,
        patience: int,
        first: bool = False,
        **options: Any,
    ) -> None:
        self.patience = patience
        self.context = browser.new_context(viewport={"width": width, "height": height}, **options)
        if not first:
            self.context.add_init_script(SEEN)
        self.page = self.context.new_page()
        self.page.set_default_timeout(patience)
        self.complaints: list[str] = []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._request)
        self.page.goto(url)
        self.page.wait_for_selector("#start")
        self.page.wait_for_selector(".models.ready")

    def _console(self, message: Any) -> None:
        if message.type == "error":
            self.complaints.append(message.text)

    def _request(self, request: Any) -> None:
        if request.url.startswith("http") and "//127.0.0.1" not in request.url:
            self.complaints.append(f"asked {request.url}")

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).first.inner_text())

    def figure(self, name: str) -> str:
        """What the tile of that name shows."""
        tile = self.page.locator(".tile", has=self.page.get_by_text(name, exact=True))
        return str(tile.locator(".figure").inner_text())

    def begin(self, button: str = "#start") -> None:
        """Press Start (or a scenario). The status line is marked first: a change clears that."""
        self.page.evaluate("document.querySelector('#status .status').setAttribute('old', '')")
        self.page.click(button)

    def wait(self, kind: str) -> None:
        """Until the status line changed since `begin` and is of that kind: busy, done, error."""
        self.page.wait_for_selector(f"#status .status.{kind}:not([old])")

    def run(self, button: str = "#start") -> None:
        """Begin, and wait for the end."""
        self.begin(button)
        self.wait("done")

    def summary(self) -> str:
        """The summary as a reader would copy it: without what was rejected."""
        return str(
            self.page.evaluate(
                """() => {
                  const box = document.getElementById('summary').cloneNode(true);
                  box.querySelectorAll('.rej, .pending, .quiet').forEach((n) => n.remove());
                  return box.textContent;
                }"""
            )
        )

    def saved(self, button: str = "#save") -> str:
        """The run as its JSON Lines file, or whatever that button saves."""
        with self.page.expect_download() as waiting:
            self.page.click(button)
        return Path(waiting.value.path()).read_text(encoding="utf-8")


@pytest.fixture
def visit(browser: Any) -> Iterator[Any]:
    """Opens tabs: visit(url, width=…, height=…, …). No tab may complain, whatever the test does."""
    tabs: list[Tab] = []

    def opened(
        url: str, width: int = 1440, height: int = 900, patience: int = PATIENCE, **options: Any
    ) -> Tab:
        tabs.append(Tab(browser, url, width, height, patience, **options))
        return tabs[-1]

    yield opened
    for tab in tabs:
        tab.context.close()
    assert [c for tab in tabs for c in tab.complaints] == []


@pytest.fixture(scope="session")
def smol_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The app as a process of its own, over real weights of the pair `smol`; in fp32, where
    an article gives the same text however its prompt was cut into chunks."""
    from sidecar_core.errors import SidecarError
    from sidecar_core.models.loading import fetch

    try:
        fetch("smol")
    except SidecarError as error:
        pytest.skip(f"the weights of smol cannot be had here: {error}")
    port = free_port()
    log = tmp_path_factory.mktemp("app") / "log.txt"
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("GRADIO_", "SIDECAR_P"))
    }
    with log.open("w") as out:
        app = subprocess.Popen(
            [
                *(sys.executable, "app.py", "--pair", "smol", "--precision", "fp32"),
                *("--port", str(port)),
            ],
            cwd=ROOT,
            env=environment,
            stdout=out,
            stderr=out,
        )
        try:
            url = f"http://127.0.0.1:{port}/"
            _listening(url, app, log)
            yield url
        finally:
            app.terminate()
            app.wait(30)


def _listening(url: str, app: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(240):
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            assert app.poll() is None, log.read_text()
            time.sleep(0.25)
        else:
            return
    raise AssertionError(log.read_text())
