"""The tour in a real browser, without any model."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from sidecar_core.host.model_host import ModelHost
from sidecar_core.scenarios import SCENARIOS
from tests.runs import ScriptedEngine
from tests.served import PATIENCE, Served, page_of

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def blocked() -> Iterator[str]:
    """The page with the shipped recordings, over models that never load."""
    never = threading.Event()
    host = ModelHost(lambda progress: (never.wait() and ScriptedEngine(), ""))  # type: ignore[arg-type,return-value]
    host.start()
    with page_of(host) as url:
        yield url
    never.set()


@pytest.fixture
def arrive(browser: Any) -> Iterator[Any]:
    """Opens the page as a new visitor, in a context with these options."""
    contexts = []

    def opened(url: str, **options: Any) -> Any:
        contexts.append(browser.new_context(viewport={"width": 1440, "height": 900}, **options))
        page = contexts[-1].new_page()
        page.set_default_timeout(3 * PATIENCE)
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()


def at_scene(page: Any, number: int) -> None:
    page.wait_for_selector(f"[data-tour='{number}']")
    key = SCENARIOS[number - 1].key
    marked = f"#scenario-{key}, #scenario-identical"
    colours = page.locator(marked).evaluate_all(
        "(all) => all.map((e) => getComputedStyle(e).backgroundColor)"
    )
    assert len(set(colours)) == min(number, 2)


@pytest.mark.essential
def test_a_first_visit_is_shown_the_tour_while_the_models_load_and_leads_or_ends_it(
    arrive: Any, blocked: str
) -> None:
    page = arrive(blocked)
    at_scene(page, 1)
    assert "This is a recording" in page.inner_text("#banner")
    page.wait_for_selector("#summary .t")
    page.keyboard.press("ArrowRight")
    at_scene(page, 2)
    page.keyboard.press(" ")
    page.wait_for_selector("#play:not([disabled])")
    page.keyboard.press("ArrowLeft")
    at_scene(page, 1)
    assert page.is_enabled("#start")
    page.click("#document-masking input")
    page.wait_for_selector("[data-tour]", state="detached")
    page.wait_for_selector("#status :text('paused')")
    assert not page.is_checked("#document-masking input")
    page.reload()
    page.wait_for_selector("[data-do=tour]")
    page.wait_for_timeout(3000)
    assert page.locator("[data-tour]").count() == 0
    page.click("[data-do=tour]")
    at_scene(page, 1)


def test_with_reduced_motion_the_tour_of_an_address_goes_step_by_step(
    arrive: Any, blocked: str
) -> None:
    page = arrive(f"{blocked}?tour", reduced_motion="reduce")
    for number in range(1, 4):
        at_scene(page, number)
        assert "α" in page.inner_text("#note b ~ *, #note p")
        assert "Done" in page.inner_text("#status")
        page.keyboard.press(" ")
    at_scene(page, 4)
    page.keyboard.press("Escape")
    page.wait_for_selector("[data-tour]", state="detached")


def test_start_takes_the_place_of_the_tour(visit: Any, served: Served) -> None:
    tab = visit(served.url + "?tour", patience=3 * PATIENCE)
    tab.page.wait_for_selector("[data-tour='1']")
    tab.run()
    assert not tab.page.locator("#player").is_visible()
    assert "Done in 3.0 s" in tab.text("#status")
