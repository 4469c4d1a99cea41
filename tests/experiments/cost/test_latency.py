"""How long tagging takes, from the recordings that come with the program."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from sidecar_core.errors import SidecarError
from sidecar_core.events import SummaryFinished, TagsFinished
from sidecar_core.experiments.cost.latency import latency
from sidecar_core.recording import read_recording
from sidecar_core.report import RunReport
from tests.experiments.calls import result_of, table_of

FILES = sorted((Path(__file__).parents[3] / "assets" / "recordings").glob("*-masked.jsonl"))


def test_the_medians_are_those_of_the_recorded_seconds():
    recordings = [read_recording(file.read_text("utf-8")) for file in FILES]
    found = latency([RunReport.of(recording.events) for recording in recordings])
    assert found["runs"] == len(FILES) >= 5
    for tagger in ("sidecar", "standalone"):
        seconds = [
            event.seconds
            for recording in recordings
            for event in recording.events
            if isinstance(event, TagsFinished) and event.tagger == tagger
        ]
        assert found[tagger]["seconds"] == pytest.approx(statistics.median(seconds))
        assert 0 < found[tagger]["percent"] < 100
    ends = [e.seconds for r in recordings for e in r.events if isinstance(e, SummaryFinished)]
    assert found["summary_seconds"] < statistics.median(ends)  # reading the article is not in it


def test_the_sidecar_reads_less_than_the_standalone():
    found = latency([RunReport.of(read_recording(f.read_text("utf-8")).events) for f in FILES])
    assert found["sidecar"]["tokens"] < found["standalone"]["tokens"] / 2


def test_a_run_without_tags_is_refused():
    recording = read_recording(FILES[0].read_text("utf-8"))
    events = [event for event in recording.events if not isinstance(event, TagsFinished)]
    with pytest.raises(SidecarError, match="no tags of both taggers"):
        latency([RunReport.of(events)])
    with pytest.raises(SidecarError, match="no summary"):
        latency([RunReport.of(())])


def test_cost_shows_what_recorded_runs_took(capsys):
    files = ["--from-run", *map(str, FILES[:3])]
    assert result_of(capsys, "cost", "--pair", "coder", *files)["latency"]["runs"] == 3
    assert "of the summary's time" in table_of(capsys, "cost", "--pair", "coder", *files)
