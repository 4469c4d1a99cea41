"""What a visitor typed is there again after a reload and after a restart of the server."""

from __future__ import annotations

from typing import Any

import pytest

from tests.served import Served, options

pytestmark = pytest.mark.browser

OWN = "A pasted article.\nIt has two lines, <b>markup</b> and an emoji 🐝."
BOXES = {
    "#article textarea": OWN,
    "#leak-summary textarea": "A summary to be tagged.",
    "#leak-watch input, #leak-watch textarea": "broken arrow",
}


def is_there(tab: Any, selector: str, words: str) -> None:
    tab.page.wait_for_function(
        "([s, w]) => document.querySelector(s)?.value === w", arg=[selector, words]
    )


def fill(tab: Any) -> None:
    tab.page.get_by_role("tab", name="Tag lab").click()
    for selector, words in BOXES.items():
        tab.page.fill(selector, words)
    tab.page.wait_for_function(
        "(all) => all.every((w) => Object.values(sessionStorage).includes(w))",
        arg=list(BOXES.values()),
    )


def reload(tab: Any) -> None:
    """Load the page again; the browser tells of the requests that this breaks off."""
    tab.page.reload()
    tab.page.wait_for_selector(".models.ready")
    tab.complaints.clear()


def all_there(tab: Any) -> None:
    is_there(tab, "#article textarea", OWN)
    tab.page.get_by_role("tab", name="Tag lab").click()
    for selector, words in BOXES.items():
        is_there(tab, selector, words)


def test_a_reload_brings_back_what_was_typed_and_says_so(visit: Any, served: Served) -> None:
    tab = visit(served.url)
    assert tab.page.locator("#toast.on").count() == 0
    fill(tab)
    reload(tab)
    tab.page.wait_for_selector("#toast:has-text('was restored')", state="attached")
    all_there(tab)
    tab.page.wait_for_function("document.querySelector('#example input').value === ''")
    tab.run()
    assert tab.page.input_value("#article textarea") == OWN


def test_another_tab_starts_with_the_example(visit: Any, served: Served) -> None:
    first = visit(served.url)
    example = first.page.input_value("#article textarea")
    fill(first)
    other = visit(served.url)
    second = first.context.new_page()
    second.goto(served.url)
    second.wait_for_selector(".models.ready")
    assert other.page.input_value("#article textarea") == example
    assert second.input_value("#article textarea") == example


def test_an_example_that_was_chosen_is_still_chosen_after_a_reload(
    visit: Any, served: Served
) -> None:
    tab = visit(served.url)
    tab.page.fill("#article textarea", "Some other article.")
    tab.page.wait_for_function("document.querySelector('#example input').value === 'Other'")
    reload(tab)
    is_there(tab, "#article textarea", "Some other article.")
    tab.page.wait_for_function("document.querySelector('#example input').value === 'Other'")


def test_a_restarted_server_finds_the_pasted_article_on_the_page(visit: Any) -> None:
    """Gradio's page loads itself again once it finds the server that it had lost; here the test
    does it, whenever that may be."""
    chosen = options()
    first = Served(chosen)
    tab = visit(first.url)
    fill(tab)
    first.demo.close()
    second = Served(chosen)
    try:
        assert second.url == first.url
        reload(tab)
        all_there(tab)
        tab.run()
    finally:
        tab.context.close()
        tab.complaints.clear()  # the browser tells of the servers that it lost
        second.demo.close()
