"""The public API: its names, what importing it costs, and the example in its documentation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import sidecar_core
from sidecar_core import events
from sidecar_core.models import loading
from sidecar_core.report import RunReport
from sidecar_core.tasks import HASHTAGS, HEADLINE
from tests.tiny_pair import tiny_engine

ARTICLE = "The council voted on Tuesday to replace the boilers of the old quarter."
README = Path(__file__).parent.parent / "README.md"
SECTION = "### A sidecar task of your own"


def test_every_public_name_is_there():
    assert {"load_pair", "HASHTAGS", "SidecarTask", "RunSettings", "RunReport"} <= set(
        sidecar_core.__all__
    )
    for name in sidecar_core.__all__:
        assert getattr(sidecar_core, name) is not None, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = sidecar_core.nothing


def test_every_event_of_a_run_is_public():
    private = {"LoadProgress"}  # heard by `progress`, not part of a run
    assert set(events.EVENTS) - private <= set(sidecar_core.__all__)


def test_importing_the_package_loads_no_torch():
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, sidecar_core; sidecar_core.HASHTAGS, sidecar_core.RunSettings;"
            "print([m for m in ('torch', 'transformers', 'gradio') if m in sys.modules])",
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=README.parent,
    )
    assert found.stdout.strip() == "[]"


@pytest.fixture
def tiny(monkeypatch):
    engine = tiny_engine()
    monkeypatch.setattr(loading, "load_pair", lambda *_, **__: engine.pair)


def test_one_call_loads_a_pair_and_the_next_streams(tiny):
    engine = sidecar_core.load_pair("auto")
    settings = sidecar_core.RunSettings(max_tokens=8)
    report = RunReport.of(engine.stream(ARTICLE, settings, task=HEADLINE))
    assert list(report.tasks) == ["headline"]
    assert report.finished
    many = RunReport.of(engine.stream(ARTICLE, settings, tasks=[HASHTAGS, HEADLINE]))
    assert list(many.tasks) == ["hashtags", "headline"]


def example() -> str:
    """The code in the package's documentation."""
    text = sidecar_core.__doc__ or ""
    lines = [line for line in text.splitlines() if line.startswith("    ") or not line]
    return textwrap.dedent("\n".join(lines)).strip()


def test_a_task_from_scratch_takes_less_than_fifteen_lines_and_runs(tiny, capsys):
    code = example()
    assert sum(bool(line.strip()) for line in code.splitlines()) < 15
    exec(code, {"article": ARTICLE})
    shown = capsys.readouterr().out.splitlines()
    assert sorted(line.split()[0] for line in shown) == ["sidecar", "standalone"]


def test_the_example_in_the_readme_is_this_one():
    text = README.read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text[text.index(SECTION) :], flags=re.DOTALL)
    assert blocks[0].strip() == example()


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ({}, "PASSIVE 10000"),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE None"),
        ({"GOMP_SPINCOUNT": "7"}, "None 7"),
    ],
)
def test_threads_soon_sleep_while_they_wait_unless_the_user_says_otherwise(said, wanted):
    code = "import os, sidecar_core; e = os.environ.get; print(e(names[0]), e(names[1]))"
    names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    environment = {k: v for k, v in os.environ.items() if k not in names}
    run = subprocess.run(
        [sys.executable, "-c", f"names = {names}; {code}"],
        env=environment | said | {"PYTHONPATH": str(README.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == wanted
