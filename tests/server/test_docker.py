"""The Docker image, as far as it can be told without Docker: its file, and a start as it says."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.checkout import ROOT, copy_project
from tests.served import free_port
from tests.server.dockerfile import Dockerfile, ignored
from tests.server.process import PATIENCE, App, environment, running

USER = 1000


@pytest.fixture(scope="module")
def dockerfile() -> Dockerfile:
    return Dockerfile((ROOT / "Dockerfile").read_text("utf-8"))


def test_the_container_runs_as_user_1000_with_a_home_of_its_own(dockerfile: Dockerfile) -> None:
    assert f"--uid {USER} user" in dockerfile.all("RUN")[0]
    assert dockerfile.one("USER") == "user"
    names = [name for name, _ in dockerfile.steps]
    assert names.index("USER") < names.index("COPY")
    assert dockerfile.one("WORKDIR").startswith("/home/user/")
    assert dockerfile.env["HOME"] == "/home/user"


def test_caches_are_in_the_home_and_made_before_the_start(dockerfile: Dockerfile) -> None:
    made = next(words for words in dockerfile.all("RUN") if words.startswith("mkdir"))
    for name in ("HF_HOME", "SIDECAR_CACHE"):
        assert dockerfile.env[name].startswith("/home/user/")
        assert f'"${name}"' in made


def test_the_container_listens_everywhere_at_port_7860(dockerfile: Dockerfile) -> None:
    assert dockerfile.one("EXPOSE") == "7860"
    assert dockerfile.env["GRADIO_SERVER_PORT"] == "7860"
    assert dockerfile.env["GRADIO_SERVER_NAME"] == "0.0.0.0"
    assert "127.0.0.1:7860/healthz" in dockerfile.health_check()[-1]


def test_every_copied_file_is_there_and_belongs_to_the_user(dockerfile: Dockerfile) -> None:
    for words in dockerfile.all("COPY"):
        option, *sources, _ = words.split()
        assert option == "--chown=user"
        for source in sources:
            assert (ROOT / source).exists()
            assert source == "." or not ignored(ROOT, source)


def test_what_the_app_needs_is_not_ignored_and_what_it_does_not_need_is() -> None:
    for name in ("app.py", "requirements.txt", "sidecar_core/page/page.py", "assets/style.css"):
        assert not ignored(ROOT, name)
    for name in (".git/config", "tests/conftest.py", "sidecar_core/__pycache__/x.pyc", ".ci/run"):
        assert ignored(ROOT, name)


@functools.cache
def as_user() -> tuple[str, ...]:
    """What goes before a command so that user 1000 runs it, if we are root and the machine lets us.

    The tests' Python may lie in root's own folder: the capability to read everything, and to write
    nothing more, lets the user run it.
    """
    if os.getuid() != 0 or (setpriv := shutil.which("setpriv")) is None:
        return ()
    caps = "-all,+dac_read_search"
    prefix = (
        *(setpriv, "--reuid", str(USER), "--regid", str(USER), "--clear-groups"),
        *("--inh-caps", caps, "--ambient-caps", caps, "--bounding-set", caps),
    )
    tried = subprocess.run([*prefix, sys.executable, "-c", "import psutil"], capture_output=True)
    return prefix if tried.returncode == 0 else ()


@pytest.fixture(scope="module")
def container(dockerfile: Dockerfile) -> Iterator[App]:
    """The image's steps in a folder of its own, then its command; no weights can be had."""
    home = Path(tempfile.mkdtemp(prefix="home-of-user-"))
    try:
        workdir = home / "app"
        copy_project(workdir, lambda name: not ignored(ROOT, name))
        inside = {
            name: value.replace("/home/user", str(home))
            for name, value in dockerfile.env.items()
            if name != "PATH"
        }
        for name in ("HF_HOME", "SIDECAR_CACHE"):
            Path(inside[name]).mkdir(parents=True)
        home.chmod(0o755)
        if os.getuid() == 0:
            for path in (home, *home.rglob("*")):
                os.chown(path, USER, USER)
        env = environment(home, **inside, SIDECAR_PAIR="coder")
        command = [word if word != "python" else sys.executable for word in dockerfile.command()]
        with tempfile.TemporaryDirectory() as logs:
            log = Path(logs) / "log"
            with running(log, free_port(), env, [*as_user(), *command], workdir) as app:
                yield app
    finally:
        shutil.rmtree(home)


def check(dockerfile: Dockerfile, app: App) -> int:
    """The exit code of the image's health check, asked of `app`."""
    python, *words = dockerfile.health_check()
    assert python == "python"
    here = [word.replace(":7860", f":{app.port}") for word in words]
    done = subprocess.run([sys.executable, *here], capture_output=True, timeout=PATIENCE)
    return done.returncode


@pytest.mark.slow
def test_it_answers_before_the_weights_are_there_then_says_that_they_cannot_be_had(
    container: App, dockerfile: Dockerfile
) -> None:
    end = time.monotonic() + PATIENCE
    while (first := container.health()) is None:
        assert time.monotonic() < end, container.output
        assert container.process.poll() is None, container.output
        time.sleep(0.05)
    assert first.json()["status"] in ("loading", "failed")
    assert container.until("failed").status_code == 503
    assert check(dockerfile, container) != 0
    page = httpx.get(container.url)
    assert page.status_code == 200
    assert "Speculative Sidecar" in page.text


@pytest.mark.slow
def test_it_runs_as_the_user_where_it_can(container: App) -> None:
    status = Path(f"/proc/{container.process.pid}/status")
    if not status.exists():
        pytest.skip("needs /proc")
    container.until("failed")
    uid = int(status.read_text().split("Uid:")[1].split()[0])
    assert uid == (USER if as_user() else os.getuid())


@pytest.mark.browser
def test_its_page_says_in_words_that_the_models_failed(container: App, browser: Any) -> None:
    container.until("failed")
    page = browser.new_page()
    page.set_default_timeout(PATIENCE * 1000)
    page.goto(container.url)
    page.wait_for_selector(".models.failed")
    words = page.inner_text(".models")
    page.close()
    assert "Qwen2.5-Coder" in words or "weights" in words or "download" in words.lower()


def test_the_health_check_is_content_with_an_app_whose_models_load(
    dockerfile: Dockerfile, served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also behind a proxy, which does not answer here."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    app = App(None, Path(), int(served.url.split(":")[2].strip("/")))  # type: ignore[arg-type]
    assert check(dockerfile, app) == 0
