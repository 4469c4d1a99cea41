"""Two runs in step on the page."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from sidecar_core.host.session import MAX_RECORDINGS, Session
from sidecar_core.page.recordings import Recordings
from sidecar_core.page.side_by_side import PAIRS, Compared, SideBySide
from sidecar_core.prompts import Article
from sidecar_core.recording import record, write_recording
from sidecar_core.report import RunReport
from sidecar_core.settings import RunSettings
from sidecar_core.view.runs_table import RunRecord
from tests.runs import whole_run
from tests.served import Served

ARTICLE = "The plant closed. The Broken Arrow line is gone."


@pytest.fixture
def shelf(tmp_path: Path) -> Recordings:
    for name in ("one", "two"):
        recording = record(whole_run()).named(name, ARTICLE)
        (tmp_path / f"{name}.jsonl").write_text(write_recording(recording), "utf-8")
    return Recordings(tmp_path, ())


@pytest.fixture
def part(shelf: Recordings) -> SideBySide:
    with gr.Blocks():
        made = SideBySide(shelf, gr.Textbox(), gr.State(Session()))
        made.build(gr.HTML())
    return made


def kept(session: Session, number: int, article: str = ARTICLE) -> None:
    events = whole_run()
    run = RunRecord(RunSettings(), RunReport.of(events), number, Article.of(article).key)
    session.keep(run, record(events))


def test_a_tabs_runs_on_the_article_come_first(part: SideBySide) -> None:
    session = Session()
    kept(session, 1)
    kept(session, 1, "Another article.")
    left, right = part.on_runs(session, ARTICLE, "two", "gone")
    assert [name for name, _ in left.choices] == [
        "Run 1: masked, document masked", "one", "two",
    ]  # fmt: skip
    assert left.value == "two"
    assert right.value == "Run 1: masked, document masked"


def test_a_tab_keeps_the_latest_recordings_and_no_article() -> None:
    session = Session()
    for number in range(MAX_RECORDINGS + 3):
        kept(session, number)
    assert [run.number for run, _ in session.recordings] == [*range(3, MAX_RECORDINGS + 3)]
    assert all(recording.article is None for _, recording in session.recordings)


def test_a_run_and_a_recording_play_in_step_to_the_end(part: SideBySide) -> None:
    page, mine = Session(), Compared()
    kept(page, 1)
    mine.stop.set()
    name = "Run 1: masked, document masked"
    for by in (1, 1, 1, 1):
        last = part._stepping(by)(mine, page, ARTICLE, name, "one")
    assert "The text is the same, token for token." in last[0]
    assert "#plant" in last[4]["list"]
    assert "#plant" in last[7]["list"]
    assert not mine.busy.locked()


def test_a_choice_that_is_gone_is_an_error_and_the_next_one_plays(part: SideBySide) -> None:
    page, mine = Session(), Compared()
    with pytest.raises(gr.Error, match="Choose a run"):
        list(part.on_play(mine, page, "", "gone", "one"))
    threading.Timer(0.1, lambda: mine.stop.set()).start()
    assert len(list(part.on_play(mine, page, "", "two", "one"))) >= 2


def test_too_many_are_refused(part: SideBySide) -> None:
    taken = 0
    while part.places.acquire(blocking=False):
        taken += 1
    with pytest.raises(gr.Error, match="recordings are playing"):
        list(part.on_play(Compared(), Session(), "", "two", "one"))
    part.places.release(taken)


def test_the_shipped_recordings_have_both_pairs() -> None:
    from sidecar_core.installed import ASSETS

    with gr.Blocks():
        shipped: Any = SideBySide(
            Recordings(ASSETS / "recordings", ()), gr.Textbox(), gr.State(Session())
        )
        shipped.build(gr.HTML())
    for _, *keys in PAIRS:
        left, right = shipped._ready(*keys)
        assert left in shipped.shelf.found
        assert right in shipped.shelf.found


@pytest.mark.browser
def test_a_browser_plays_two_of_the_tabs_runs_in_step(visit: Any, served: Served) -> None:
    tab = visit(served.url)
    tab.run("#scenario-suffix-visible")
    tab.run("#scenario-document-attended")
    tab.page.get_by_role("tab", name="Side by side").click()
    for side, name in (("left", "Run 1"), ("right", "Run 2")):
        tab.page.click(f"#pair-{side} input")
        tab.page.locator(f"#pair-{side}").get_by_role("option", name=name).click()
    tab.page.click("#pair-player button:has-text('round ›')")
    tab.page.wait_for_selector("#pair-line :text('Round 1 of 2.')")
    tab.page.click("#pair-player button:has-text('Play')")
    tab.page.wait_for_selector("#pair-line :text('The text is the same')")
    assert "#plant" in tab.text("#pair-left-card")
    assert "document attended" in tab.text("#pair-right-card")
    assert tab.page.locator("#pair-chart .scatterlayer .trace").count() == 2
