"""Takes the README's screenshots from a page that is being served with real models.

`python -m tests.page.screenshots [--url URL] [--out FOLDER]`. Runs three scenarios on the first
example article, so that the chart has lines to compare, and then photographs the page as a
visitor sees it: on a desk in light and dark, on a phone, and the attention map with the table of
runs.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.served import BROWSERS, FLAGS, ROOT, Tab

PATIENCE = 900_000
"""Milliseconds that the models may take for anything."""

SCENARIOS = ("identical", "suffix-visible", "document-attended")
DESK = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:7860")
    parser.add_argument("--out", type=Path, default=ROOT / "assets" / "screenshots")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        parser.error(f"no browser on the PATH; looked for {', '.join(BROWSERS)}")
    with sync_playwright() as play:
        photograph(play.chromium.launch(executable_path=path, args=FLAGS), options.url, options.out)


def photograph(browser: Any, url: str, folder: Path) -> None:
    """Run the scenarios in one tab, then take all pictures of that tab."""
    tab = Tab(browser, f"{url}?__theme=light", **DESK, patience=PATIENCE)
    for key in SCENARIOS:
        tab.run(f"#scenario-{key}")
        print(tab.text("#note"))
    page = tab.page
    page.wait_for_timeout(1000)  # the chart's last redraw
    page.screenshot(path=folder / "page.png")
    page.locator("#compare").screenshot(path=folder / "compare.png")
    page.click("[data-do=theme]")
    page.screenshot(path=folder / "dark.png")
    page.click("[data-do=theme]")
    page.set_viewport_size(PHONE)
    page.wait_for_timeout(1000)
    page.locator("#status").scroll_into_view_if_needed()
    page.evaluate("document.getElementById('status').scrollIntoView()")
    page.screenshot(path=folder / "phone.png")


if __name__ == "__main__":
    main()
