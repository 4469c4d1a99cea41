"""The page under its headers, in a browser: it works, and asks no other host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.served import PATIENCE, Served, options

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def locked() -> Iterator[Served]:
    served = Served(options(password="open sesame"))
    yield served
    served.demo.close(verbose=False)


@pytest.mark.slow
@pytest.mark.essential
def test_every_part_of_the_page_opens_and_no_other_host_is_asked(
    visit: Any, served: Served
) -> None:
    """Every tab of these tests complains of any other host and of anything the policy blocks."""
    tab = visit(served.url)
    tab.run()
    tab.page.click("#more > button")
    tab.page.click("#how > button")
    tab.page.get_by_role("tab", name="Tag lab").click()
    tab.page.wait_for_selector("#leak-start")
    tab.page.click("button:has-text('Use via API')")
    tab.page.wait_for_selector("text=/summarise")
    # There Gradio looks for its MCP server, which is not switched on.
    assert all("404" in words for words in tab.complaints)
    tab.complaints.clear()


def test_the_policy_blocks_other_hosts(visit: Any, served: Served) -> None:
    tab = visit(served.url)
    blocked = tab.page.evaluate(
        """() => Promise.all(["img", "script", "iframe"].map((name) => new Promise((done) => {
          const node = document.createElement(name);
          document.addEventListener("securitypolicyviolation", (event) => {
            if (event.blockedURI.includes(name)) done(event.effectiveDirective);
          });
          node.src = `https://${name}.invalid/`;
          document.body.append(node);
        })))"""
    )
    assert blocked == ["img-src", "script-src-elem", "frame-src"]
    assert tab.complaints
    tab.complaints.clear()


def test_the_page_opens_with_the_password(browser: Any, locked: Served) -> None:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(locked.url)
    page.get_by_label("username").fill("visitor")
    page.get_by_label("password").fill("open sesame")
    page.get_by_role("button", name="Login").click()
    page.wait_for_selector(".models.ready")
    page.click("#start")
    page.wait_for_selector("#status .status.done")
    page.close()


def test_the_version_is_on_the_page(visit: Any, served: Served) -> None:
    from sidecar_core import __version__

    assert __version__ in visit(served.url).text("#about")
