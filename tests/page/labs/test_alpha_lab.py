"""The α lab: figures, measurements as views, and the tab in a browser."""

from __future__ import annotations

import csv
import json
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from sidecar_core.errors import SidecarError
from sidecar_core.examples import Example
from sidecar_core.experiments.alpha import measure as alpha
from sidecar_core.experiments.alpha.conditions import ABOUT, choose
from sidecar_core.experiments.alpha.measure import measure
from sidecar_core.experiments.alpha.pooling import pool
from sidecar_core.experiments.alpha.sweep import LENGTHS, pool_sweep, sweep_conditions
from sidecar_core.experiments.corpus import Document, Skipped
from sidecar_core.experiments.readings import MAX_TOKENS, DocumentAlpha, Step
from sidecar_core.host.model_host import ModelHost
from sidecar_core.page.labs import alpha_measurement
from sidecar_core.page.labs.alpha_measurement import AlphaLabSession, AlphaMeasurement
from sidecar_core.page.labs.lab_run import KEPT, LabView, run_lab
from sidecar_core.tasks import HASHTAGS
from sidecar_core.view.labs import alpha_results as figures
from sidecar_core.view.labs.alpha_results import ConditionBar
from tests.experiments.measured import ARTICLES, DOCUMENTS, close_engine
from tests.hosts import ready_host
from tests.served import page_of

NAMES = list(ABOUT)
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def host() -> ModelHost:
    return ready_host(close_engine())


def run(
    host: ModelHost,
    session: AlphaLabSession,
    documents: Sequence[Document],
    compared: Any = "conditions",
    names: Sequence[str] = NAMES,
    visitor: str | None = None,
) -> Iterator[LabView]:
    measurement = AlphaMeasurement(
        compared, tuple(names), tuple(documents), records=session.records
    )
    return run_lab(host, session, measurement, visitor)


def views(
    host: ModelHost, session: AlphaLabSession, *documents: Document, **options: Any
) -> list[LabView]:
    return list(run(host, session, documents, **options))


def by_hand(host: ModelHost, *documents: Document) -> list[DocumentAlpha]:
    engine: Any = host.engine()
    items = measure(engine, documents, choose(NAMES, engine, HASHTAGS), max_tokens=MAX_TOKENS)
    return [item for item in items if isinstance(item, DocumentAlpha)]


# --- figures ----------------------------------------------------------------------------------


def test_bars_show_alpha_difference_interval_and_the_published_marks():
    html = figures.bars(
        [
            ConditionBar("identical", 0.65, (0.6, 0.7), done=1),
            ConditionBar("visible", 0.62, (0.57, 0.67), -0.03, (-0.04, -0.02), -0.03 / 0.65, 1),
        ]
    )
    assert 'class="fill" style="width:62.00%"' in html
    assert "-0.0300" in html
    assert "-4.6%" in html
    assert html.count('class="whisker" style') == 3
    for value in ("0.6493", "0.616", "0.627", "-0.0333", "-0.0091"):
        assert f": {value}" in html
    assert 'aria-label="alpha by condition: identical 0.650; visible 0.620"' in html


def test_bars_without_a_figure_yet_show_none():
    html = figures.bars([ConditionBar(name) for name in NAMES])
    assert 'class="fill"' not in html
    assert "nan" not in html.lower()


def test_a_collapse_does_not_flatten_the_other_differences():
    rows = [
        ConditionBar("identical", 0.6, done=1),
        ConditionBar("masked", 0.58, gap=-0.02, relative=-0.033, done=1),
        ConditionBar("unrelated", 0.1, gap=-0.5, relative=-0.83, done=1),
    ]
    html = figures.bars(rows)
    assert 'class="gap beyond" style="left:0.00%;width:50.00%"' in html
    assert "-0.5000" in html


def test_the_cost_chart_shows_our_line_and_the_published_ones(host):
    engine: Any = host.engine()
    conditions = sweep_conditions(LENGTHS)
    items = measure(engine, DOCUMENTS[:2], conditions, max_tokens=24)
    result = pool_sweep([i for i in items if isinstance(i, DocumentAlpha)], LENGTHS)
    html = figures.cost_chart(result["lengths"])
    assert html.count("<polyline") == 3
    assert html.count('class="dot"') == 5
    assert "the posts, Qwen2.5-Instruct 7B with 1.5B: -0.0099" in html
    table = figures.cost_table(result["lengths"])
    assert f"{result['lengths']['400']['cost']:+.4f}" in table
    assert "+0.0150" in table


def test_the_tables_hold_every_condition_depth_place_and_article(host):
    result = pool(by_hand(host, *DOCUMENTS[:2]), gamma=4, max_tokens=MAX_TOKENS)
    html = figures.tables(result)
    for name, found in result["conditions"].items():
        assert f'<th scope="row">{name}</th><td>{found["alpha"]:.4f}</td>' in html
    assert "α by position in the summary" in html
    assert "<td>story" not in html
    assert '<th scope="row">story-1</th>' in html


def test_the_verdict_says_what_masking_costs_and_what_reading_costs(host):
    result = pool(by_hand(host, *DOCUMENTS[:2]), gamma=4, max_tokens=MAX_TOKENS)
    words = figures.verdict(result)
    assert f"<b>{-result['decomposition']['position_cost']['difference']:+.4f}</b>" in words
    assert "2 articles, 95 % intervals" in words
    assert figures.verdict({"decomposition": {}, "documents": 3}) == ""


def test_names_from_an_upload_are_text(host):
    document = Document(HOSTILE, ARTICLES[0])
    lab = AlphaMeasurement("conditions", tuple(NAMES), (document,), [Skipped(HOSTILE, HOSTILE)])
    for item in by_hand(host, document):
        lab.add(item)
    html = lab.result(running=False)
    assert "<img" not in html
    assert "&lt;img" in html


# --- a measurement ----------------------------------------------------------------------------


@pytest.mark.slow
def test_the_last_view_shows_what_the_command_line_would_measure(host):
    session = AlphaLabSession()
    last = views(host, session, *DOCUMENTS[:2])[-1]
    result = pool(by_hand(host, *DOCUMENTS[:2]), gamma=4, max_tokens=MAX_TOKENS)
    assert last.running is False
    assert last.status["kind"] == "done"
    for found in result["conditions"].values():
        assert f"{found['alpha']:.4f}" in last.result
    saved = session.latest.saved()
    assert saved["conditions"] == result["conditions"]
    assert saved["pair"] == "close"
    assert saved["published"]["big"]["alpha"]["masked"] == 0.6391


def test_a_condition_shows_its_alpha_while_the_article_is_still_read(host):
    engine: Any = host.engine()
    lab = AlphaMeasurement("conditions", tuple(NAMES), DOCUMENTS[:1])
    halfway = None
    for item in measure(engine, DOCUMENTS[:1], choose(NAMES, engine, HASHTAGS)):
        lab.add(item)
        if getattr(item, "condition", "") == "masked" and item.done < item.total:
            halfway = lab.result(running=True), item
    figure, step = halfway
    assert f"<b>{step.alpha:.4f}</b>" in figure
    assert f'class="read" style="width:{100 * step.done / step.total:.0f}%"' in figure


def test_the_csv_has_a_line_for_every_article_and_one_for_all(host):
    session = AlphaLabSession()
    views(host, session, *DOCUMENTS[:2])
    rows = list(csv.DictReader(session.latest.csv().splitlines()))
    assert [row["article"] for row in rows] == ["story-0", "story-1", "pooled"]
    found = session.latest.pooled()
    assert float(rows[-1]["alpha masked"]) == found["conditions"]["masked"]["alpha"]
    views(host, session, *DOCUMENTS[:1], compared="lengths")
    rows = list(csv.DictReader(session.latest.csv().splitlines()))
    assert [row["suffix_tokens"] for row in rows] == [str(n) for n in LENGTHS]


@pytest.mark.slow
def test_a_table_that_is_saved_meanwhile_does_not_stay(host, monkeypatch):
    first, second = by_hand(host, *DOCUMENTS[:2])
    lab = AlphaMeasurement("conditions", tuple(NAMES), DOCUMENTS[:2])
    lab.add(first)

    def slow(results, **options):  # while another thread's table is made, an article arrives
        if len(results) == 1:
            lab.add(second)
            lab.pooled()
        return pool(results, **options)

    monkeypatch.setattr(alpha_measurement, "pool", slow)
    lab.pooled()
    assert lab.pooled()["documents"] == 2


@pytest.mark.slow
def test_stop_keeps_the_articles_that_are_done_and_the_next_run_goes_on(host):
    session = AlphaLabSession()
    seen = []
    for view in run(host, session, DOCUMENTS, "conditions", NAMES):
        seen.append(view)
        if len(session.latest.results) == 1:
            session.stop.set()
    assert seen[-1].status["message"] == f"Stopped. {KEPT}"
    assert seen[-1].running is False
    assert len(session.latest.results) == 1
    assert '<th scope="row">story-0</th>' in seen[-1].result
    views(host, session, *DOCUMENTS)
    assert len(session.latest.results) == 3


def test_a_closed_tab_frees_the_models_and_the_session(host):
    session = AlphaLabSession()
    open_views = run(host, session, DOCUMENTS, "conditions", NAMES)
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
            yield Step("one", "reading the article (target)", 1, 2)
        finally:
            places.append(len(host.queue))

    def breaks(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(alpha, "measure", work)
    monkeypatch.setattr(AlphaMeasurement, "add", breaks)
    with pytest.raises(SidecarError, match="ZeroDivisionError"):
        views(host, AlphaLabSession(), *DOCUMENTS)
    assert places == [1]


def test_a_measurement_that_takes_too_long_ends_and_says_why(host, monkeypatch):
    monkeypatch.setattr(host, "lab_seconds", 0.0)
    last = views(host, AlphaLabSession(), *DOCUMENTS)[-1]
    assert last.status["message"].startswith("Stopped: the time limit of 0 s")
    assert last.running is False
    assert len(host.queue) == 0


def test_an_unexpected_exception_is_one_line_and_the_next_measurement_works(host, monkeypatch):
    session = AlphaLabSession()
    with monkeypatch.context() as patch:
        patch.setattr("sidecar_core.experiments.alpha.measure.measure", lambda *_, **__: [1 / 0])
        with pytest.raises(SidecarError, match="measurement failed: ZeroDivisionError"):
            views(host, session, DOCUMENTS[0])
    assert views(host, session, DOCUMENTS[0])[-1].running is False


def test_a_visitor_with_a_run_under_way_does_not_measure_beside_it(host):
    session, ticket = AlphaLabSession(), host.queue.enter("ann")
    with pytest.raises(SidecarError, match="already"):
        views(host, session, DOCUMENTS[0], visitor="ann")
    assert not session.busy.locked()
    host.queue.leave(ticket)


@pytest.mark.slow
def test_other_visitors_get_their_turn_between_two_articles(host):
    session, order = AlphaLabSession(), []
    others = threading.Thread()
    for view in run(host, session, DOCUMENTS, "conditions", NAMES):
        if view.running and not others.ident:

            def visit() -> None:
                ticket = host.queue.enter()
                while host.queue.position(ticket):
                    time.sleep(0.005)
                order.append(len(session.latest.results))
                host.queue.leave(ticket)

            others = threading.Thread(target=visit)
            others.start()
            time.sleep(0.05)
    others.join(10)
    assert order
    assert order[0] < len(DOCUMENTS)


def test_a_second_kind_of_measurement_does_not_write_the_summary_again(host, monkeypatch):
    session = AlphaLabSession()
    views(host, session, DOCUMENTS[0])
    monkeypatch.setattr(host.engine(), "stream", None)
    views(host, session, DOCUMENTS[0], compared="lengths")
    assert len(session.latest.results) == 1


def test_an_article_too_long_is_skipped_by_name_and_alone_it_is_refused(host):
    session, long = AlphaLabSession(), Document("long", "word " * 6_000)
    last = views(host, session, DOCUMENTS[0], long)[-1]
    assert "1 article" in last.status["message"]
    assert "1 skipped" in last.status["message"]
    assert "tokens; the limit is" in last.result
    with pytest.raises(SidecarError, match="tokens; the limit is"):
        views(host, session, long)
    assert not session.busy.locked()


def test_no_condition_at_all_is_refused(host):
    with pytest.raises(SidecarError, match="at least one condition"):
        views(host, AlphaLabSession(), DOCUMENTS[0], names=[])


def test_what_a_visitor_measures_is_not_kept_on_disk(host, tmp_path, monkeypatch):
    monkeypatch.setenv("SIDECAR_CACHE", str(tmp_path / "cache"))
    views(host, AlphaLabSession(), DOCUMENTS[0])
    assert not (tmp_path / "cache").exists()


# --- in a browser -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lab_url(host) -> Iterator[str]:
    with page_of(host, (Example("Boilers", ARTICLES[0]),)) as url:
        yield url


@pytest.mark.slow
@pytest.mark.essential
@pytest.mark.browser
def test_the_tab_measures_the_article_then_a_file_and_saves_both(visit, lab_url, tmp_path):
    lines = [{"id": f"story-{n}", "text": text} for n, text in enumerate(ARTICLES)]
    (tmp_path / "news.jsonl").write_text("\n".join(map(json.dumps, [*lines, {"x": 1}])))
    tab = visit(lab_url)
    tab.page.click("#lab-start")
    tab.page.wait_for_selector("#lab-status .status.done")
    result = json.loads(tab.saved("#lab-json"))
    shown = tab.text("#lab-figure .lab-bars")
    for found in result["conditions"].values():
        assert f"{found['alpha']:.4f}" in shown
    assert len(result["per_document"]) == 1

    tab.page.set_input_files("#lab input[type=file]", tmp_path / "news.jsonl")
    tab.page.get_by_text("3 articles, 1 line skipped").wait_for()
    tab.page.click("#lab-start")
    tab.page.get_by_text("Done: 3 articles").wait_for()
    rows = list(csv.DictReader(tab.saved("#lab-csv").splitlines()))
    assert [row["article"] for row in rows] == ["story-0", "story-1", "story-2", "pooled"]

    tab.page.get_by_label("length of the masked suffix").check()
    assert not tab.page.locator("#lab-conditions").is_visible()
    tab.page.click("#lab-start")
    tab.page.wait_for_selector("#lab-figure .lab-chart .dot")
    tab.page.get_by_text("Done: 3 articles").wait_for()
    assert list(json.loads(tab.saved("#lab-json"))["lengths"]) == [str(n) for n in LENGTHS]


@pytest.mark.browser
def test_stop_leaves_what_was_measured_on_the_page(visit, lab_url, tmp_path):
    lines = [json.dumps({"id": f"s{n}", "text": f"{n}. {ARTICLES[n % 3]}"}) for n in range(100)]
    (tmp_path / "news.jsonl").write_text("\n".join(lines))
    tab = visit(lab_url)
    tab.page.set_input_files("#lab input[type=file]", tmp_path / "news.jsonl")
    tab.page.get_by_text("100 articles").wait_for()
    tab.page.fill("#lab-limit input[type=number]", "100")
    tab.page.press("#lab-limit input[type=number]", "Tab")
    tab.page.click("#lab-start")
    tab.page.wait_for_selector("#lab-figure .lab-table")
    tab.page.click("#lab-stop")
    tab.page.get_by_text(f"Stopped. {KEPT}").wait_for()
    done = len(json.loads(tab.saved("#lab-json"))["per_document"])
    assert 1 <= done < 100
    assert f"Articles ({done})" in tab.text("#lab-figure")


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1440])
def test_the_lab_fits_the_width_of_the_window(visit, lab_url, width):
    tab = visit(lab_url, width=width, height=900)
    tab.page.click("#lab-start")
    tab.page.wait_for_selector("#lab-status .status.done")
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
