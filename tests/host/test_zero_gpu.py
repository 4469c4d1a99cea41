"""ZeroGPU: what crosses to the process with the GPU, and that nothing changes without one."""

from __future__ import annotations

import inspect
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from sidecar_core.errors import SidecarError
from sidecar_core.events import EVENTS, RunFinished, TokenDrafted
from sidecar_core.experiments.corpus import Document
from sidecar_core.experiments.leak.report import LeakSettings
from sidecar_core.host import zero_gpu
from sidecar_core.host.model_host import ModelHost
from sidecar_core.host.session import Session
from sidecar_core.host.zero_gpu import GpuEngine, lab_seconds, run_seconds
from sidecar_core.page import run as live
from sidecar_core.page.labs.alpha_measurement import AlphaLabSession, AlphaMeasurement
from sidecar_core.page.labs.lab_run import run_lab
from sidecar_core.page.labs.leak_measurement import LeakLabSession, LeakMeasurement
from sidecar_core.report import RunReport
from sidecar_core.settings import RunSettings
from tests.page.test_run import until
from tests.served import free_port
from tests.server.process import ROOT, environment, running
from tests.tiny_pair import tiny_engine

ARTICLE = "The council voted on Tuesday to replace the boilers of the old quarter."
SHORT = RunSettings(max_tokens=12)


def crossed(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


class Spaces:
    """Stands in for the package `spaces`: whatever goes in or out is pickled on the way."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.refusal: Exception | None = None
        self.closed = 0
        self.running: list[Iterator[Any]] = []
        """Held as a scheduler would hold them, so that nobody else's letting go ends them."""

    def GPU(self, duration: Callable[..., int]) -> Any:
        def decorate(task: Callable[..., Iterator[Any]]) -> Any:
            assert inspect.isgeneratorfunction(task)

            def work(*arguments: Any) -> Iterator[Any]:
                self.asked.append(duration(*arguments))
                if self.refusal:
                    raise self.refusal
                items = task(*crossed(arguments))
                try:
                    for item in items:
                        yield crossed(item)
                finally:
                    items.close()  # type: ignore[attr-defined]
                    self.closed += 1

            def remote(*arguments: Any) -> Iterator[Any]:
                self.running.append(work(*arguments))
                return self.running[-1]

            return remote

        return decorate


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Spaces:
    spaces = Spaces()
    monkeypatch.setattr(zero_gpu, "spaces", spaces)
    monkeypatch.setattr(zero_gpu, "ON", True)
    return spaces


def host_of(engine: Any) -> ModelHost:
    host = ModelHost(zero_gpu.adapted(lambda progress: (engine, "tiny")))
    host.load_here()
    return host


def never() -> bool:
    return False


def test_without_spaces_everything_stays_as_it_is() -> None:
    code = (
        "import sys; sys.modules['spaces'] = None\n"
        "from sidecar_core.host import zero_gpu\n"
        "load = lambda progress: (1, 'one')\n"
        "assert not zero_gpu.ON and zero_gpu.adapted(load) is load\n"
        "work = lambda engine, n, stop: iter([engine, n, stop()])\n"
        "print(list(zero_gpu.take('e', work, 7, stop=lambda: False, seconds=9)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"SPACES_ZERO_GPU": "true", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "['e', 7, False]"


def test_with_spaces_but_no_zerogpu_the_engine_stays_as_it_is(
    stub: Spaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zero_gpu, "ON", False)
    engine = tiny_engine()
    assert host_of(engine).engine() is engine


def test_a_run_on_the_gpu_gives_the_same_events(stub: Spaces) -> None:
    here = [type(e) for e in tiny_engine().stream(ARTICLE, SHORT)]
    there = [type(e) for e in GpuEngine(tiny_engine()).stream(ARTICLE, SHORT, never)]
    assert there == here
    assert stub.asked == [run_seconds(len(ARTICLE), SHORT)]


def test_the_page_runs_on_the_gpu(stub: Spaces) -> None:
    host = host_of(tiny_engine())
    last = list(live.run(host, Session(), ARTICLE, SHORT))[-1]
    assert last.status["kind"] == "done"
    assert len(stub.asked) == 1


def test_a_stop_ends_the_other_process_s_work_and_the_run_as_stopped(stub: Spaces) -> None:
    seen: list[Any] = []
    events = GpuEngine(tiny_engine()).stream(
        ARTICLE, SHORT, lambda: any(isinstance(e, TokenDrafted) for e in seen)
    )
    for event in events:
        seen.append(event)
    assert stub.closed == 1
    assert isinstance(seen[-1], RunFinished)
    assert seen[-1].reason == "cancelled"
    assert RunReport.of(seen).drafted == 1


def test_a_closed_tab_ends_the_other_process_s_work(stub: Spaces) -> None:
    events = GpuEngine(tiny_engine()).stream(ARTICLE, SHORT, never)
    next(events)
    events.close()  # type: ignore[attr-defined]
    assert stub.closed == 1


def test_bad_input_is_refused_before_a_gpu_is_asked_for(stub: Spaces) -> None:
    engine = GpuEngine(tiny_engine())
    with pytest.raises(SidecarError, match="limit"):
        engine.stream("word " * 9000, SHORT, never)
    with pytest.raises(SidecarError, match="gamma"):
        engine.stream(ARTICLE, RunSettings(gamma=99), never)
    assert stub.asked == []


def out_of_memory(engine: Any) -> Iterator[Any]:
    yield 1
    raise SidecarError("Out of memory; use a shorter article.")


def unreadable(engine: Any) -> Iterator[Any]:
    yield 1
    raise ValueError(f"cannot read {ARTICLE}")


@pytest.mark.parametrize(
    ("work", "words"),
    [(out_of_memory, "use a shorter article"), (unreadable, "The run failed: ValueError")],
)
def test_an_error_in_the_other_process_crosses_as_one_line(
    stub: Spaces, work: Callable[[Any], Iterator[Any]], words: str
) -> None:
    items = GpuEngine(tiny_engine()).take(zero_gpu.Job(work, ()), never)
    assert next(items) == 1
    with pytest.raises(SidecarError, match=words) as caught:
        next(items)
    assert "council" not in str(caught.value)


def test_what_zerogpu_refuses_is_shown_in_its_words(stub: Spaces) -> None:
    stub.refusal = gr.Error('No GPU was available. <a href="x">Create an account</a>')
    host = host_of(tiny_engine())
    with pytest.raises(SidecarError, match=r"No GPU was available\. Create an account$"):
        list(live.run(host, Session(), ARTICLE, SHORT))
    stub.refusal = None
    assert list(live.run(host, Session(), ARTICLE, SHORT))[-1].status["kind"] == "done"


@pytest.mark.slow
@pytest.mark.parametrize("lab", ["alpha", "leak"])
def test_the_labs_run_on_the_gpu(stub: Spaces, lab: str) -> None:
    host = host_of(tiny_engine())
    document = Document("d", ARTICLE)
    settings = LeakSettings(samples=2)
    views = {
        "alpha": lambda: run_lab(
            host,
            AlphaLabSession(),
            AlphaMeasurement("conditions", ("identical", "masked"), (document,)),
        ),
        "leak": lambda: run_lab(host, LeakLabSession(), LeakMeasurement(document, settings)),
    }[lab]()
    assert list(views)[-1].status["message"].startswith("Done")
    assert len(stub.asked) == 1


def test_every_event_can_be_pickled() -> None:
    for event in tiny_engine().stream(ARTICLE, SHORT):
        assert crossed(event) == event
    assert all(crossed(kind) is kind for kind in EVENTS.values())


def test_models_are_not_loaded_anywhere_but_in_the_main_thread(stub: Spaces) -> None:
    host = ModelHost(zero_gpu.adapted(lambda progress: (tiny_engine(), "tiny")))
    host.start()
    until(lambda: host.status().state == "failed")
    assert "Restart the Space" in host.status().text


def test_the_time_asked_for_follows_the_length_and_keeps_within_bounds() -> None:
    usual = run_seconds(3000, RunSettings())
    assert zero_gpu.SHORTEST < usual < 60
    assert run_seconds(20_000, RunSettings()) > usual
    assert run_seconds(3000, RunSettings(max_tokens=300)) > usual
    assert run_seconds(3000, RunSettings(draft_prompt="unrelated")) > usual
    assert run_seconds(0, RunSettings(max_tokens=1, gamma=0)) == zero_gpu.SHORTEST
    assert run_seconds(99_999, RunSettings(max_tokens=512, gamma=16)) == zero_gpu.LONGEST
    assert usual < lab_seconds(3000, 7) <= zero_gpu.LONGEST
    assert isinstance(usual, int)


STUB = """
import inspect, sys, threading
print("early", not {"torch", "gradio"} & set(sys.modules))
def GPU(duration):
    def decorate(task):
        print("generator", inspect.isgeneratorfunction(task))
        print("main", threading.current_thread() is threading.main_thread())
        return task
    return decorate
"""

TINY = """
import sidecar_core.host.model_host as model_host
from sidecar_core.host import zero_gpu
def tiny(*asked):
    def load(progress):
        from tests.tiny_pair import tiny_engine
        return tiny_engine(), "tiny"
    return load
model_host.load_engine = tiny
import app
app.main()
"""


@pytest.mark.slow
def test_app_py_imports_spaces_first_and_decorates_before_it_serves(tmp_path: Path) -> None:
    (tmp_path / "spaces.py").write_text(STUB)
    env = environment(
        tmp_path,
        PYTHONPATH=f"{tmp_path}:{ROOT}",
        PYTHONUNBUFFERED="1",
        SPACES_ZERO_GPU="true",
    )
    with running(tmp_path / "log", free_port(), env, (sys.executable, "-c", TINY)) as app:
        app.until("ready")
    found = re.findall(r"^(\w+) (True|False)$", app.output, flags=re.MULTILINE)
    assert found == [("early", "True"), ("generator", "True"), ("main", "True")]
    assert app.output.index("main True") < app.output.index("Running on")
