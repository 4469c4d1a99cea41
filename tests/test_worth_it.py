"""The panel "Is it worth it?" says what the cost model and the recordings say."""

from __future__ import annotations

import dataclasses
import html
import re
import statistics

import pytest

from sidecar_core.experiments.cost.devices import DEVICES
from sidecar_core.experiments.cost.latency import latency
from sidecar_core.experiments.cost.model import PART3, rows
from sidecar_core.installed import ASSETS
from sidecar_core.recording import read_recording
from sidecar_core.report import RunReport

PANEL = ASSETS / "worth_it.html"


def tables() -> list[list[list[str]]]:
    """The cells of each table of the panel."""
    found = re.findall(r"<table>(.*?)</table>", PANEL.read_text("utf-8"), re.DOTALL)
    lines = [re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL) for table in found]
    return [
        [
            [html.unescape(cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", line)]
            for line in table
        ]
        for table in lines
    ]


def masked_runs() -> list[RunReport]:
    files = sorted((ASSETS / "recordings").glob("*-suffix-masked.jsonl"))
    return [RunReport.of(read_recording(file.read_text("utf-8")).events) for file in files]


def test_the_times_and_caches_are_those_of_the_recordings():
    runs = masked_runs()
    assert len(runs) == 6
    found = latency(runs)
    table = tables()[0][1:]
    for place, tagger in ((1, "sidecar"), (2, "standalone")):
        finished = [run.taggers[tagger].finished for run in runs]
        size = statistics.median(end.kv_bytes for end in finished if end is not None)
        assert [row[place] for row in table] == [
            f"{found[tagger]['seconds']:.1f} s",
            f"{found[tagger]['percent']:.0f} %",
            f"{found[tagger]['tokens']:.0f}",
            f"{size / 1e6:.1f} MB",
        ]


def test_the_posts_table_is_the_cost_models():
    wanted = [
        [
            f"{row.batch}",
            f"{row.full_bytes / 1e9:.2f}",
            f"{row.masked_bytes / 1e9:.2f}",
            f"{row.speedup:.0%}".replace("%", " %"),
        ]
        for row in rows(PART3)
    ]
    assert tables()[1][1:] == wanted


@pytest.mark.parametrize("line", range(5))
def test_the_prices_are_the_cost_models(line):
    who, machine, idle, price = tables()[2][1:][line]
    name = machine.split(",")[0]
    share = 0.3 if idle == "–" else int(idle.split()[0]) / 100
    setup = dataclasses.replace(PART3, standalone_device=DEVICES[name], idle=share)
    if name == "A100":
        setup = dataclasses.replace(setup, standalone_device=PART3.device)
    (row,) = rows(setup, [32])
    found = row.sidecar_price if who.startswith("sidecar") else row.standalone_price
    assert price == f"{found:.2f}"


def test_what_is_said_of_the_two_machines_is_so():
    large, small = DEVICES["A100"], DEVICES["T4"]
    assert round(large.rent / small.rent) == 4
    assert round(large.bandwidth / small.bandwidth) == 6
