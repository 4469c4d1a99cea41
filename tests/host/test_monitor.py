"""Runs counted, logged and stopped: what is told about them, and what never is."""

from __future__ import annotations

import io
import json
import logging
import threading
from collections.abc import Iterator

import pytest

import sidecar_core.experiments.leak.sampling  # noqa: F401  (it takes `measure` by name: before a test breaks it)
from sidecar_core.errors import SidecarError
from sidecar_core.experiments.corpus import Document
from sidecar_core.experiments.leak.report import LeakSettings
from sidecar_core.host.model_host import ModelHost
from sidecar_core.host.monitor import Ended, Monitor
from sidecar_core.host.session import Session
from sidecar_core.page import run as live
from sidecar_core.page.labs.alpha_measurement import AlphaLabSession, AlphaMeasurement
from sidecar_core.page.labs.lab_run import run_lab
from sidecar_core.page.labs.leak_measurement import LeakLabSession, LeakMeasurement
from sidecar_core.report import RunReport
from sidecar_core.server import logs
from sidecar_core.server.metrics import Metrics
from sidecar_core.settings import RunSettings
from tests.hosts import until
from tests.runs import ScriptedEngine, whole_run

ARTICLE = "Zanzibar pelicans settled quietly."
"""None of its words is in the code."""


class Heard:
    """Keeps what is told."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ends: list[Ended] = []

    def began(self, kind: str) -> None:
        self.begun.append(kind)

    def ended(self, run: Ended) -> None:
        self.ends.append(run)


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What goes to standard error as JSON."""
    logger = logging.getLogger(logs.NAME)
    before = logger.handlers[:], logger.level, logger.propagate
    logs.set_up("json")
    stream = io.StringIO()
    handler = logger.handlers[0]
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(stream)
    yield stream
    logger.handlers[:], logger.level, logger.propagate = before[0], before[1], before[2]


def watched(engine: ScriptedEngine | None = None) -> tuple[ModelHost, Heard]:
    host = ModelHost(lambda progress: (engine or ScriptedEngine(), "scripted"))
    heard = Heard()
    host.monitor = Monitor(heard, logs.RunLines())
    host.start()
    return host, heard


def run(host: ModelHost, article: str = ARTICLE) -> None:
    list(live.run(host, Session(), article, RunSettings()))


def test_a_run_is_told_with_its_figures() -> None:
    host, heard = watched()
    run(host)
    report = RunReport.of(whole_run())
    (end,) = heard.ends
    assert heard.begun == ["run"]
    assert (end.kind, end.outcome, end.reason) == ("run", "finished", "stop")
    assert (end.tokens, end.alpha) == (report.emitted, report.alpha)
    assert end.seconds > 0
    assert end.error == ""


def test_a_refused_run_never_began() -> None:
    host, heard = watched()
    for article in ("", "word " * 500):
        with pytest.raises(SidecarError):
            run(host, article)
    assert [end.outcome for end in heard.ends] == ["refused", "refused"]
    assert heard.begun == []


def test_a_stopped_run_is_told_as_stopped() -> None:
    engine, session = ScriptedEngine(), Session()
    engine.pause = 0.02
    host, heard = watched(engine)
    for _ in live.run(host, session, ARTICLE, RunSettings()):
        session.stop.set()
    assert [end.outcome for end in heard.ends] == ["stopped"]


def test_a_run_whose_tab_closed_is_told_as_stopped() -> None:
    engine = ScriptedEngine()
    engine.pause = 0.02
    host, heard = watched(engine)
    views = live.run(host, Session(), ARTICLE, RunSettings())
    next(views)
    views.close()  # type: ignore[attr-defined]
    assert [end.outcome for end in heard.ends] == ["stopped"]
    until(lambda: engine.active == 0)


def test_a_failed_run_is_told_with_the_class_of_its_error() -> None:
    engine = ScriptedEngine()
    engine.error = ZeroDivisionError("x")
    host, heard = watched(engine)
    with pytest.raises(SidecarError):
        run(host)
    assert [(end.outcome, end.error) for end in heard.ends] == [("failed", "ZeroDivisionError")]


@pytest.mark.parametrize("error", [ValueError, SidecarError])
def test_the_log_of_a_failed_run_holds_no_word_of_the_article(
    written: io.StringIO, error: type[Exception]
) -> None:
    engine = ScriptedEngine()
    engine.error = error(f"cannot read {ARTICLE!r}")
    engine.error.__cause__ = KeyError(ARTICLE)
    host, _ = watched(engine)
    with pytest.raises(SidecarError):
        run(host)
    text = written.getvalue()
    assert '"outcome": "failed"' in text
    assert "KeyError" in text
    for word in ("Zanzibar", "pelicans", "plant"):
        assert word not in text


@pytest.mark.parametrize("lab", ["alpha", "leak"])
def test_a_bug_in_a_lab_leaves_no_word_of_the_article_in_the_log(
    written: io.StringIO, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **options: object) -> None:
        raise RuntimeError(f"no memory for {ARTICLE}")

    monkeypatch.setattr("sidecar_core.experiments.alpha.measure.measure", broken)
    monkeypatch.setattr("sidecar_core.experiments.leak.sampling.leak_test", broken)
    monkeypatch.setattr("sidecar_core.page.labs.alpha_measurement._about", lambda engine: {})
    host, heard = watched()
    document = Document("d", ARTICLE)
    views = {
        "alpha": lambda: run_lab(
            host, AlphaLabSession(), AlphaMeasurement("lengths", (), (document,))
        ),
        "leak": lambda: run_lab(host, LeakLabSession(), LeakMeasurement(document, LeakSettings())),
    }[lab]()
    with pytest.raises(SidecarError, match="RuntimeError") as caught:
        list(views)
    assert "Zanzibar" not in str(caught.value)
    assert [(e.kind, e.outcome, e.error) for e in heard.ends] == [(lab, "failed", "RuntimeError")]
    assert "broken" in written.getvalue()
    assert "Zanzibar" not in written.getvalue()


def test_the_line_of_a_run_is_one_json_object(written: io.StringIO) -> None:
    host, heard = watched()
    run(host)
    (line,) = written.getvalue().splitlines()
    found = json.loads(line)
    assert set(found) == {
        "time", "level", "event", "started", "kind", "outcome", "reason", "tokens", "seconds",
        "tokens_per_second", "alpha", "error",
    }  # fmt: skip
    assert found["started"] < found["time"]
    assert found["tokens"] == heard.ends[0].tokens
    assert "plant" not in line


def test_logging_can_be_plain_or_off(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger(logs.NAME)
    before = logger.handlers[:], logger.level, logger.propagate
    host, _ = watched()
    try:
        logs.set_up("text")
        run(host)
        assert " info run finished: " in capsys.readouterr().err
        logs.set_up("off")
        run(host)
        assert capsys.readouterr().err == ""
    finally:
        logger.handlers[:], logger.level, logger.propagate = before[0], before[1], before[2]


def test_closing_stops_all_runs_and_lets_no_other_begin() -> None:
    engine = ScriptedEngine()
    engine.pause = 0.02
    host, heard = watched(engine)
    threads = [threading.Thread(target=run, args=(host,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    until(lambda: engine.active == 1)
    host.monitor.close(20)
    assert [end.outcome for end in heard.ends] == ["stopped"] * 3
    with pytest.raises(SidecarError, match="shutting down"):
        run(host)
    for thread in threads:
        thread.join(20)


def test_metrics_count_what_happened() -> None:
    metrics = Metrics(lambda: 4)
    metrics.began("run")
    metrics.began("run")
    metrics.ended(Ended("run", "finished", "stop", 48, 6.0, 9.5, 0.77, ""))
    metrics.ended(Ended("run", "failed", "", 2, 1.0, None, None, "ValueError"))
    metrics.ended(Ended("run", "refused", "", 0, 0.0, None, None, "SidecarError"))
    lines = metrics.text().decode().splitlines()
    for line in (
        'sidecar_runs_started_total{kind="run"} 2.0',
        'sidecar_runs_ended_total{kind="run",outcome="finished"} 1.0',
        'sidecar_runs_ended_total{kind="run",outcome="failed"} 1.0',
        'sidecar_runs_ended_total{kind="run",outcome="refused"} 1.0',
        'sidecar_runs_ended_total{kind="run",outcome="stopped"} 0.0',
        "sidecar_tokens_total 50.0",
        "sidecar_runs_waiting 4.0",
        'sidecar_alpha_bucket{le="0.7"} 0.0',
        'sidecar_alpha_bucket{le="0.8"} 1.0',
        "sidecar_tokens_per_second_sum 9.5",
        'sidecar_run_seconds_count{kind="run"} 2.0',
    ):
        assert line in lines


def test_two_apps_in_one_process_count_apart() -> None:
    one, two = Metrics(lambda: 0), Metrics(lambda: 0)
    one.began("run")
    assert b'sidecar_runs_started_total{kind="run"} 1.0' in one.text()
    assert b'sidecar_runs_started_total{kind="run"} 0.0' in two.text()


def test_what_nobody_foresaw_before_a_run_began_is_a_failure_and_written_down(
    written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScriptedEngine, "stream", lambda *_: 1 / 0)
    host, heard = watched()
    with pytest.raises(SidecarError, match="ZeroDivisionError"):
        run(host)
    assert [end.outcome for end in heard.ends] == ["failed"]
    assert "ZeroDivisionError" in written.getvalue()

    def unreadable(article: str) -> None:
        raise ValueError(f"cannot read {article}")

    monkeypatch.setattr(live, "check_text", unreadable)
    with pytest.raises(SidecarError, match="ValueError") as caught:
        run(host)
    assert "Zanzibar" not in str(caught.value) + written.getvalue()
