"""The overlap inspector in Chromium: by mouse, touch and keyboard, live and in an export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sidecar_core.events import Candidates, Event, TokenAccepted, TokenRejected
from sidecar_core.recording import record
from sidecar_core.settings import RunSettings
from sidecar_core.view.recording_page import recording_page
from tests.runs import HOSTILE, whole_run
from tests.served import Served

pytestmark = pytest.mark.browser

ROWS = ((" plant", 0.6, 0.2), (HOSTILE, 0.3, 0.5), ("\n", 0.0, 0.1))


def run_with_candidates(settings: RunSettings) -> list[Event]:
    """The scripted run, with candidates at every judged place."""
    events: list[Event] = []
    for event in whole_run(settings):
        if isinstance(event, TokenAccepted | TokenRejected):
            events.append(Candidates(event.round, event.place, ROWS, event.seconds))
        events.append(event)
    return events


def shown(page: Any) -> str:
    return str(page.inner_text("#inspector"))


@pytest.mark.essential
def test_a_click_on_a_token_shows_both_distributions_and_why(visit: Any, served: Served) -> None:
    served.engine.events = run_with_candidates
    tab = visit(served.url)
    tab.run()
    tab.page.click("#summary .t.rej")
    words = shown(tab.page)
    assert "Rejected: u = 0.750 is above min(1, p ∕ q) = 0.111." in words
    assert "these 3 tokens account for 0.500 of it" in words  # 0.2 + 0.3 + 0
    assert HOSTILE.replace(" ", "␣") in words
    assert tab.page.locator("#inspector img, #inspector script").count() == 0
    bars = tab.page.locator("#inspector tr:nth-child(2) .share i")
    widths = [bars.nth(n).bounding_box()["width"] for n in range(2)]
    assert widths[0] == pytest.approx(3 * widths[1], rel=0.05)
    tab.page.keyboard.press("Escape")
    assert tab.page.locator("#inspector").count() == 0
    tab.page.click("#summary .t.cor")
    assert "takes the place of the rejected token" in shown(tab.page)
    tab.page.mouse.click(5, 5)
    assert tab.page.locator("#inspector").count() == 0


def test_the_arrow_keys_and_enter_lead_to_it_and_escape_back(visit: Any, served: Served) -> None:
    served.engine.events = run_with_candidates
    tab = visit(served.url)
    tab.run()
    tab.page.focus("#summary")
    for key in ("ArrowRight", "ArrowRight", "Enter"):
        tab.page.keyboard.press(key)
    assert "Accepted" in shown(tab.page)
    tab.page.keyboard.press("Escape")
    focused = tab.page.evaluate("document.activeElement.textContent")
    assert focused == tab.page.locator("#summary .t[data-why]").nth(1).inner_text()


def test_on_a_phone_a_tap_opens_it_within_the_screen(visit: Any, served: Served) -> None:
    served.engine.events = run_with_candidates
    tab = visit(served.url, width=390, height=844, has_touch=True)
    tab.run()
    tab.page.locator("#summary .t.rej").scroll_into_view_if_needed()
    tab.page.tap("#summary .t.rej")
    box = tab.page.locator("#inspector").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    shut = tab.page.locator("#inspector .shut").bounding_box()
    assert min(shut["width"], shut["height"]) >= 44
    tab.page.tap("#inspector .shut")
    assert tab.page.locator("#inspector").count() == 0


def test_it_works_in_an_exported_page_opened_from_a_file(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "run.html"
    file.write_text(recording_page(record(run_with_candidates(RunSettings()))), "utf-8")
    page = browser.new_page()
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(file.as_uri())
    page.click("#summary .t.cor")
    assert "takes the place of the rejected token" in shown(page)
    assert page.locator("#inspector tr").count() == 4
    page.keyboard.press("Escape")
    assert page.locator("#inspector").count() == 0
    assert not complaints
    page.close()
