"""The tag lab: leak tests as views, the cost model's handlers, and the tab in a browser."""

from __future__ import annotations

import dataclasses
import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from sidecar_core.decoding.batch import Sample
from sidecar_core.errors import SidecarError
from sidecar_core.examples import Example
from sidecar_core.experiments.corpus import Document
from sidecar_core.experiments.cost.devices import DEVICES, SHAPES
from sidecar_core.experiments.cost.model import PART3, CostSetup, Lengths, rows
from sidecar_core.experiments.leak import sampling as leak
from sidecar_core.experiments.leak.report import (
    CONDITIONS,
    Forced,
    LeakReport,
    LeakSettings,
    Sampled,
)
from sidecar_core.experiments.leak.sampling import leak_test
from sidecar_core.experiments.readings import Step
from sidecar_core.host.model_host import ModelHost
from sidecar_core.host.session import Session
from sidecar_core.page.labs import lab_run, tag_lab
from sidecar_core.page.labs.lab_run import KEPT, LabView, run_lab
from sidecar_core.page.labs.leak_measurement import LeakLabSession, LeakMeasurement
from sidecar_core.page.labs.tag_lab import MAX_SAMPLES, TAGGER, TagLab
from sidecar_core.settings import RunSettings
from sidecar_core.view.labs.tag_results import cost_view, leak_view
from sidecar_core.view.runs_table import RunRecord
from tests.experiments.cost.test_model import finished_run
from tests.hosts import ready_host
from tests.served import page_of
from tests.tiny_pair import tiny_engine

ARTICLE = "The council voted on Tuesday to replace the boilers of the old quarter."
DOCUMENT = Document("the article on the page", ARTICLE)
SETTINGS = LeakSettings(samples=5, watch="boilers")
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def host() -> ModelHost:
    return ready_host(tiny_engine())


def run(
    host: ModelHost,
    session: LeakLabSession,
    document: Document = DOCUMENT,
    settings: LeakSettings = SETTINGS,
    summary: str | None = None,
) -> Iterator[LabView]:
    return run_lab(host, session, LeakMeasurement(document, settings, summary, session.records))


def views(host: ModelHost, session: LeakLabSession, **options: Any) -> list[LabView]:
    return list(run(host, session, **options))


# --- the leak test ------------------------------------------------------------------------------


def planted() -> LeakReport:
    """Half of the attended lists name Kansas, which only the document does."""
    report = LeakReport("kan sas")
    document = Document("a", f"A wall is built in Kansas. {HOSTILE}")
    report.add(Forced(document, f"A wall is built. {HOSTILE}", (1,)))
    for name in ("attended", "masked"):
        for row in range(10):
            leak = ("kansas",) if name == "attended" and row % 2 else ()
            report.add(Sampled("a", name, Sample(row, (), "", ("wall", HOSTILE, *leak))))
    return report


def test_rates_intervals_and_the_watched_fact_are_shown():
    html = leak_view(planted(), LeakSettings(samples=10))
    assert "<b>50%<small>5 of 10</small></b>" in html
    assert "<b>0%<small>0 of 10</small></b>" in html
    assert 'class="fill" style="width:50.00%"' in html
    assert html.count('class="whisker"') == 2
    assert "“kan sas” in 5 of 10" in html
    assert "<b>+50 points</b>" in html
    assert "p = 0.033" in html


def test_a_condition_under_way_says_how_far_it_is():
    html = leak_view(planted(), LeakSettings(samples=40))
    assert html.count('class="read" style="width:25%"') == 2
    assert html.count('class="read" style="width:0%"') == 2


def test_every_tag_says_where_it_stands():
    html = leak_view(planted(), LeakSettings(samples=10))
    kansas = next(row for row in html.split("<tr") if "#kansas" in row)
    assert kansas.startswith(' class="document watched"')
    assert "only in the document" in kansas
    assert "A wall is built in Kansas." in kansas
    assert "<td>5</td><td>·</td>" in kansas


def test_markup_in_tags_summary_and_watched_word_is_text():
    report = planted()
    report.watch = HOSTILE
    html = leak_view(report, LeakSettings(samples=10))
    assert "<img" not in html
    assert "&lt;img" in html


def test_the_page_says_what_masking_cannot_do():
    assert "computed with the document attended" in leak_view(planted(), LeakSettings())


@pytest.mark.slow
def test_the_last_view_shows_what_the_command_line_would_count(host):
    session = LeakLabSession()
    last = views(host, session)[-1]
    report = LeakReport(SETTINGS.watch)
    for event in leak_test(host.engine(), DOCUMENT, SETTINGS):
        report.add(event)
    assert session.latest.report.as_dict() == report.as_dict()
    assert last == LabView(last.status, leak_view(report, SETTINGS), False)
    assert last.status["message"] == "Done: 20 tag lists under 4 conditions."


def test_a_given_summary_is_what_is_tagged(host):
    session = LeakLabSession()
    views(host, session, summary="A council votes.")
    assert session.latest.report.forced.text == "A council votes."


@pytest.mark.parametrize(
    ("watch", "summary", "words"),
    [("x" * 101, None, "limit is 100"), ("", "word " * 100_000, "the limit is")],
)
def test_a_huge_fact_or_summary_is_refused_before_it_is_read(host, watch, summary, words):
    settings = dataclasses.replace(SETTINGS, watch=watch)
    with pytest.raises(SidecarError, match=words):
        list(run(host, LeakLabSession(), DOCUMENT, settings, summary))


@pytest.mark.slow
def test_a_snapshot_does_not_grow_with_the_test(host):
    session = LeakLabSession()
    views(host, session)
    taken = session.latest.report.snapshot()
    before = taken.as_dict()
    session.latest.report.lists["standalone"].append(("late",))
    session.latest.report.lists["new"] = []
    assert taken.as_dict() == before


@pytest.mark.slow
def test_a_second_test_does_not_write_the_summary_again(host, monkeypatch):
    session = LeakLabSession()
    views(host, session)
    monkeypatch.setattr(host.engine(), "stream", None)
    assert views(host, session)[-1].status["kind"] == "done"


def test_stop_keeps_what_was_sampled_and_the_next_test_works(host, monkeypatch):
    monkeypatch.setattr(lab_run, "UPDATES_PER_SECOND", 1e9)  # a view for every pass
    session = LeakLabSession()
    seen = []
    for view in run(host, session, DOCUMENT, SETTINGS):
        seen.append(view)
        if len(session.latest.report.lists) == 2:
            session.stop.set()
    assert seen[-1].status["message"] == f"Stopped. {KEPT}"
    assert set(session.latest.report.lists) < set(CONDITIONS)
    assert views(host, session)[-1].running is False


def test_a_closed_tab_frees_the_models_and_the_session(host):
    session = LeakLabSession()
    open_views = run(host, session, DOCUMENT, SETTINGS)
    next(open_views)
    next(open_views)
    open_views.close()
    assert not session.busy.locked()
    ticket = host.queue.enter()
    assert host.queue.position(ticket) == 0
    host.queue.leave(ticket)


def test_work_ends_before_its_place_at_the_models_is_given_up(host, monkeypatch):
    """Also where the page breaks, whose error holds on to all that was under way."""
    places = []

    def work(*_: Any, **__: Any) -> Iterator[Step]:
        try:
            yield Step("one", "reading the article (draft)", 1, 2)
        finally:
            places.append(len(host.queue))

    def breaks(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(leak, "leak_test", work)
    monkeypatch.setattr(LeakReport, "add", breaks)
    with pytest.raises(SidecarError, match="ZeroDivisionError"):
        views(host, LeakLabSession())
    assert places == [1]


def test_a_test_that_takes_too_long_ends_and_says_why(host, monkeypatch):
    monkeypatch.setattr(host, "lab_seconds", 0.0)
    last = views(host, LeakLabSession())[-1]
    assert last.status["message"].startswith("Stopped: the time limit of 0 s")
    assert len(host.queue) == 0


@pytest.mark.slow
def test_other_visitors_get_their_turn_between_two_conditions(host):
    session, order = LeakLabSession(), []

    def visit() -> None:
        ticket = host.queue.enter()
        while host.queue.position(ticket):
            time.sleep(0.005)
        order.append(len(session.latest.report.lists))
        host.queue.leave(ticket)

    visitor = threading.Thread(target=visit)
    for _ in run(host, session, DOCUMENT, SETTINGS):
        if not visitor.ident:
            visitor.start()
            time.sleep(0.05)
    visitor.join(10)
    assert order
    assert order[0] < len(CONDITIONS)


def test_a_second_test_in_the_same_tab_waits_or_is_refused(host, monkeypatch):
    session = LeakLabSession()
    monkeypatch.setattr(session, "busy", type("Taken", (), {"acquire": lambda *_, **__: False})())
    with pytest.raises(SidecarError, match="in progress in this tab"):
        views(host, session)


def test_an_article_that_is_too_long_is_refused_in_words(host):
    session = LeakLabSession()
    document = dataclasses.replace(DOCUMENT, text="word " * 30_000)
    with pytest.raises(SidecarError, match="the limit is"):
        list(run(host, session, document, SETTINGS))
    assert not session.busy.locked()


@pytest.mark.slow
def test_what_a_visitor_samples_is_not_kept_on_disk(host, tmp_path, monkeypatch):
    monkeypatch.setenv("SIDECAR_CACHE", str(tmp_path / "cache"))
    views(host, LeakLabSession())
    assert not (tmp_path / "cache").exists()


# --- the cost model -----------------------------------------------------------------------------


@pytest.fixture
def lab(host) -> TagLab:
    with gr.Blocks():
        made = TagLab(host, gr.Textbox(), gr.State(Session()))
        made.build()
    return made


CHOICES = [TAGGER, "bf16", "T4", 0.5, "L4", 499, 129, 20, 0.3, 2.5]


def test_the_table_is_that_of_the_cost_model(lab):
    shown = lab.cost_of(*CHOICES)
    device = dataclasses.replace(DEVICES["T4"], rent=0.5)
    lengths = dataclasses.replace(Lengths(), full=628, masked=129, tags=20)
    footprint = SHAPES[TAGGER].footprint("bf16")
    scenario = CostSetup(footprint, device, lengths, DEVICES["L4"], 0.3, 2.5)
    assert shown == cost_view(scenario, rows(scenario))
    for row in rows(scenario):
        assert f"<td>{row.sidecar_price:,.2f}</td>" in shown
        assert f"<td>{row.speedup:.0%}</td>" in shown


def test_the_reference_table_can_be_read_off_the_page():
    html = cost_view(PART3, rows(PART3))
    shown = re.findall(
        r'<th scope="row">(\d+)</th><td>([\d.]+) GB</td><td>([\d.]+) GB</td>.*?(\d+)%', html
    )
    assert shown == [
        ("1", "3.11", "3.09", "0"),
        ("16", "3.38", "3.15", "7"),
        ("32", "3.67", "3.21", "14"),
        ("64", "4.24", "3.33", "28"),
        ("128", "5.39", "3.56", "51"),
    ]
    assert "from a batch of <b>11</b> on" in html


def test_an_impossible_choice_is_a_clear_line_and_no_crash(lab):
    for place, value in ((0, "abacus"), (1, "fp4"), (2, "abacus"), (3, -1.0), (8, 1.0), (9, -1.0)):
        choices = [*CHOICES[:place], value, *CHOICES[place + 1 :]]
        with pytest.raises(gr.Error):
            lab.cost_of(*choices)


def test_a_program_cannot_ask_for_more_samples_than_the_page(lab, monkeypatch):
    asked = []
    monkeypatch.setattr(
        tag_lab, "run_lab", lambda host, session, test, who: asked.append(test.settings) or iter(())
    )
    list(
        lab.sample(LeakLabSession(), ARTICLE, "", "", 5_000, 0.7, SimpleNamespace(session_hash=""))
    )
    assert [settings.samples for settings in asked] == [MAX_SAMPLES]


def test_an_emptied_rent_is_the_list_price(lab):
    listed = [*CHOICES[:3], DEVICES["T4"].rent, *CHOICES[4:]]
    assert lab.cost_of(*CHOICES[:3], None, *CHOICES[4:]) == lab.cost_of(*listed)
    assert lab.rent_of("H100") == DEVICES["H100"].rent


def test_lengths_come_from_the_latest_run_on_the_page(lab):
    page = Session()
    with pytest.raises(gr.Error, match="no run yet"):
        lab.lengths_of(page)
    report = finished_run(document_masking=True)
    page.keep(RunRecord(RunSettings(), report))
    assert lab.lengths_of(page) == (200, 100, 20)


# --- in a browser -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lab_url(host) -> Iterator[str]:
    with page_of(host, (Example("Boilers", ARTICLE),)) as url:
        yield url


def opened(visit: Any, url: str, **options: Any) -> Any:
    tab = visit(url, **options)
    tab.page.get_by_role("tab", name="Tag lab").click()
    tab.page.wait_for_selector("#leak-start")
    return tab


@pytest.mark.slow
@pytest.mark.essential
@pytest.mark.browser
def test_the_tab_samples_the_article_shows_rates_and_saves_them(visit, lab_url):
    tab = opened(visit, lab_url)
    tab.page.fill("#leak-watch input, #leak-watch textarea", "boilers")
    tab.page.click("#leak-start")
    tab.page.wait_for_selector("#leak-status .status.done")
    with tab.page.expect_download() as waiting:
        tab.page.click("#leak-save")
    result = json.loads(Path(waiting.value.path()).read_text(encoding="utf-8"))
    shown = tab.text("#leak-result")
    assert list(result["conditions"]) == list(CONDITIONS)
    for found in result["conditions"].values():
        assert f"{found['leaks']} of {found['samples']}" in shown
        assert f"“boilers” in {found['watched']} of {found['samples']}" in shown


@pytest.mark.browser
def test_a_slider_redraws_the_cost_at_once_and_without_the_models(visit, lab_url):
    tab = opened(visit, lab_url)
    before = tab.text("#cost-result")
    tab.page.get_by_label("Document, tokens").first.fill("4000")
    tab.page.get_by_label("Document, tokens").first.press("Tab")
    tab.page.get_by_text("4,129 cached tokens").wait_for()
    assert tab.text("#cost-result") != before
    assert tab.page.locator("#cost-result svg").count() == 1


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1440])
def test_the_lab_fits_the_width_of_the_window(visit, lab_url, width):
    tab = opened(visit, lab_url, width=width, height=900)
    tab.page.click("#leak-start")
    tab.page.wait_for_selector("#leak-status .status.done")
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
