"""A recording as one HTML file: the same figures, nothing from elsewhere, nothing that runs."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from sidecar_core.events import Event, RoundStarted, RunFailed, TagsFinished, TagText, TokenEvent
from sidecar_core.installed import ASSETS
from sidecar_core.recording import Recording, read_recording, record, write_recording
from sidecar_core.report import RunReport
from sidecar_core.view.player import steps
from sidecar_core.view.recording_page import SHOWN, recording_page
from sidecar_core.view.render import tiles
from tests.runs import HOSTILE, one_round, started, whole_run
from tests.view.test_render import Page

ARTICLE = "The plant closed. The Broken Arrow line is gone."
ATTACK = (
    "</script><script>window.hit=1</script><img src=x onerror='window.hit=1'>"
    '"><a href="javascript:window.hit=1">x</a><!--{{data}}${window.hit=1}'
)


def recorded(events: list[Event] | None = None) -> Recording:
    return record(whole_run() if events is None else events, "identical").named("Plant", ARTICLE)


def hostile() -> Recording:
    """Attacks in every text that a file can bring."""
    events = [
        dataclasses.replace(started(), pair=ATTACK),
        *one_round(0, [(ATTACK, 0.9)], (ATTACK, 0.2), ATTACK),
        *whole_run(tag=ATTACK)[-8:],
    ]
    whole = record(events).named(ATTACK, ATTACK)
    header = dataclasses.replace(
        whole.header, pair=ATTACK, machine=ATTACK, software={ATTACK: ATTACK}, scenario=ATTACK
    )
    begun = dataclasses.replace(whole.started, pair=ATTACK)
    return read_recording(write_recording(Recording(header, (begun, *whole.events[1:]))))


def data_of(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="run">(.*?)</script>', page)
    assert found
    return json.loads(found[1])


def test_it_says_what_the_run_said() -> None:
    page = recording_page(recorded())
    report = RunReport.of(whole_run())
    for words in tiles(report).values():
        assert words in page
    assert "This is a recording" in page
    assert "pair toy in fp32 on cpu" in page
    assert "#plant" in page
    assert "Identical prompts" in page


def test_its_last_frame_is_the_run_and_its_first_one_empty() -> None:
    data = data_of(recording_page(recorded()))
    first, last = data["frames"][0], data["frames"][-1]
    shown = tiles(RunReport.of(whole_run()))
    assert shown.items() <= last.items()
    assert last["shown"] == sum(isinstance(event, SHOWN) for event in whole_run())
    assert last["points"] == len(data["points"])
    assert last["sidecar"]["done"]
    assert (first["shown"], first["pending"], first["alpha"]) == (0, [], "–")


def test_frames_go_forward_and_single_steps_stop_behind_the_rounds() -> None:
    data = data_of(recording_page(recorded()))
    times = [frame["at"] for frame in data["frames"]]
    assert times == sorted(times)
    assert len(data["stops"]) == len(steps(whole_run()))
    assert data["stops"][-1] == len(times) - 1
    first = data["frames"][data["stops"][0]]
    assert first["rate_note"] == "2 of 3 judged drafts"


def test_nothing_is_fetched_and_only_its_own_script_and_styles_may_run() -> None:
    page = recording_page(recorded())
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    assert policy[1].startswith("default-src 'none'; ")
    assert "unsafe" not in policy[1]
    for element in ("style", "script"):
        inline = re.search(rf"<{element}>(.*?)</{element}>", page, flags=re.DOTALL)
        assert inline
        digest = base64.b64encode(hashlib.sha256(inline[1].encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy[1]
    assert "://" not in page
    attributes = {name for _, found in Page(page).elements for name in found}
    assert "style" not in attributes
    assert not any(name.startswith("on") for name in attributes)


def test_whatever_a_file_brings_stays_text() -> None:
    page = recording_page(hostile())
    elements = [name for name, _ in Page(page).elements]
    usual = [name for name, _ in Page(recording_page(recorded())).elements]
    assert set(elements) <= set(usual)
    assert elements.count("script") == 2
    assert page.count('"frames":') == 1  # whatever says {{data}}
    assert not any(name.startswith("on") for _, found in Page(page).elements for name in found)
    assert data_of(page)["frames"]


def test_an_error_that_a_file_brings_is_text() -> None:
    recording = recorded([*whole_run()[:9], RunFailed(ATTACK, 3.0)])
    page = recording_page(read_recording(write_recording(recording)))
    names = [name for name, _ in Page(page).elements]
    assert "img" not in names
    assert names.count("script") == 2


def test_the_article_itself_is_not_in_it() -> None:
    assert "Broken Arrow" not in recording_page(recorded())


def test_without_the_document_no_tag_is_said_to_leak_or_not() -> None:
    without = record(whole_run(tag="arrow")).named("")
    assert "not in the summary" in recording_page(without)
    assert "only in the document" in recording_page(recorded(whole_run(tag="arrow")))


@pytest.mark.parametrize("length", [1, 2, 5, 9, 14])
def test_a_run_that_breaks_off_anywhere_makes_a_page(length: int) -> None:
    page = recording_page(recorded(whole_run()[:length]))
    assert len(data_of(page)["frames"]) >= 1


# In a browser


class File:
    """The page opened from the disk, and everything that it asked for or complained of."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(path.as_uri())

    def summary(self) -> str:
        return str(
            self.page.evaluate(
                """() => [...document.querySelectorAll('#summary .t:not([hidden]):not(.rej)')]
                  .map((token) => token.textContent).join('')"""
            )
        )


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Any:
    files: list[File] = []

    def open_file(recording: Recording, **options: Any) -> File:
        path = tmp_path / f"run{len(files)}.html"
        path.write_text(recording_page(recording), encoding="utf-8")
        files.append(File(browser, path, **options))
        assert files[-1].asked == [path.as_uri()]
        return files[-1]

    yield open_file
    for file in files:
        file.context.close()
    assert [c for file in files for c in file.complaints] == []
    assert all(len(file.asked) == 1 for file in files)


@pytest.mark.essential
@pytest.mark.browser
def test_opened_as_a_file_it_shows_the_summary_and_asks_for_nothing(opened: Any) -> None:
    file = opened(recorded())
    report = RunReport.of(whole_run())
    assert file.summary().split() == report.text.replace(" ", "").split()
    assert file.page.inner_text("#alpha") == f"{report.alpha:.3f}"
    assert "This is a recording" in file.page.inner_text(".bar")
    assert "#plant" in file.page.inner_text("#sidecar")


@pytest.mark.browser
def test_it_steps_plays_and_ends_where_it_was(opened: Any) -> None:
    file = opened(recorded())
    page, whole = file.page, file.summary()
    while page.is_enabled("#back"):
        page.click("#back")
    assert file.summary() == ""
    assert page.inner_text("#alpha") == "–"
    assert not page.locator("#sidecar .result").is_visible()
    page.click("#forward")
    assert "plant" in file.summary()
    assert "closed" not in file.summary()
    assert "2 of 3" in page.inner_text("#rate_note")
    page.select_option("#speed", "Infinity")
    page.click("#play")
    page.wait_for_selector("#forward[disabled]")
    assert file.summary() == whole
    assert page.locator("#sidecar .result").is_visible()
    assert page.inner_text("#play") == "Play"


@pytest.mark.browser
def test_it_can_be_paused(opened: Any) -> None:
    slow = [
        dataclasses.replace(event, seconds=100 * event.seconds)
        if isinstance(event, TokenEvent | RoundStarted)
        else event
        for event in whole_run()
    ]
    file = opened(recorded(slow))
    file.page.click("#play")
    file.page.wait_for_selector("#summary .t:not([hidden])")
    file.page.click("#play")
    assert file.page.inner_text("#play") == "Play"
    assert file.page.is_enabled("#forward")


@pytest.mark.browser
def test_attacks_in_a_file_are_shown_and_inert(opened: Any) -> None:
    file = opened(hostile())
    page = file.page
    assert ATTACK in page.inner_text(".bar")
    assert ATTACK in page.inner_text("#summary")
    assert HOSTILE in page.inner_text("#sidecar")
    assert page.locator("img, a, iframe").count() == 0
    while page.is_enabled("#back"):
        page.click("#back")
    while page.is_enabled("#forward"):
        page.click("#forward")
    assert page.evaluate("window.hit") is None


@pytest.mark.essential
@pytest.mark.browser
def test_the_policy_stops_what_would_get_past_the_escapes(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    page = recording_page(recorded())
    path.write_text(page.replace("</main>", "<script>window.hit=1</script></main>"), "utf-8")
    file = File(browser, path)
    assert file.page.evaluate("window.hit") is None
    assert "Content Security Policy" in " ".join(file.complaints)
    file.context.close()


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_a_phone_in_light_and_dark(opened: Any, theme: str) -> None:
    file = opened(hostile(), viewport={"width": 390, "height": 844}, color_scheme=theme)
    assert file.page.evaluate("document.documentElement.scrollWidth") <= 390
    paper = file.page.evaluate("getComputedStyle(document.body).backgroundColor")
    red = int(re.findall(r"\d+", paper)[0])
    assert (red > 128) == (theme == "light")


@pytest.mark.browser
def test_axe_finds_nothing_serious(opened: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    file = opened(recorded())
    found = axe.Axe().run(file.page).response["violations"]
    assert [v["id"] for v in found if v["impact"] in ("serious", "critical")] == []


@pytest.mark.browser
def test_without_scripts_the_whole_run_can_be_read(opened: Any) -> None:
    file = opened(recorded(), java_script_enabled=False)
    assert "closed" in file.page.inner_text("#summary")
    assert not file.page.locator("#controls").is_visible()


def test_a_page_grows_with_its_recording_and_not_faster() -> None:
    def page(tokens: int) -> int:
        run = whole_run()
        at = next(n for n, e in enumerate(run) if isinstance(e, TagText))
        words = [TagText("sidecar", 1, "word ", 2.1 + n / 4) for n in range(tokens)]
        late = [e for e in run[at:] if isinstance(e, TagsFinished)]
        events = [*run[:at], *words, *late]
        return len(recording_page(record(events, "")))

    small, middle, large = page(200), page(400), page(800)
    assert (large - middle) < 2.5 * (middle - small)


def test_the_exported_page_has_the_colours_of_the_page() -> None:
    """Light first, then dark, in both files."""
    colour = re.compile(r"(--[\w-]+): (#\w+);")
    ours = colour.findall((ASSETS / "style.css").read_text("utf-8"))
    theirs = colour.findall((ASSETS / "recording.html").read_text("utf-8"))
    half = next(n for n, (name, _) in enumerate(ours) if n and name == ours[0][0])
    cut = next(n for n, (name, _) in enumerate(theirs) if n and name == theirs[0][0])
    assert theirs[:cut]
    assert set(theirs[:cut]) <= set(ours[:half])
    assert set(theirs[cut:]) <= set(ours[half:])
