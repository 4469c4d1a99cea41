"""Recordings in a real browser: run, save, open, watch; no model is needed for it."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecar_core.host.model_host import ModelHost
from sidecar_core.page import recordings
from sidecar_core.recording import Recording, read_recording, record, write_recording
from sidecar_core.report import RunReport
from sidecar_core.scenarios import BY_KEY
from sidecar_core.settings import RunSettings
from tests.runs import HOSTILE, ScriptedEngine, one_round, started, whole_run
from tests.served import PATIENCE, Served, options, page_of

pytestmark = pytest.mark.browser

EXAMPLE = "The plant closed. The Broken Arrow line is gone."
REPORT = RunReport.of(whole_run())


def recorded(key: str = "identical", seconds: float = 1.0) -> Recording:
    """A run of the page's first example; a round takes so many seconds."""
    settings = BY_KEY[key].apply(RunSettings())
    events = [
        dataclasses.replace(event, seconds=seconds * event.seconds)
        if hasattr(event, "seconds")
        else event
        for event in whole_run(settings)
    ]
    return record(events, key).named("The plant", EXAMPLE)


def slow() -> Recording:
    """Two hundred rounds, three minutes."""
    events = [
        started(),
        *(e for n in range(200) for e in one_round(n, [(f" some{n}", 0.9)] * 3, own=" x")),
        *whole_run()[-8:],
    ]
    return record(events, "identical").named("The plant", EXAMPLE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the page offers: two scenarios of one article, and a long one of another."""
    made = tmp_path_factory.mktemp("recordings")
    for key in ("identical", "suffix-visible"):
        (made / f"plant-{key}.jsonl").write_text(write_recording(recorded(key)))
    long = slow().named("Unending", EXAMPLE)
    (made / "unending-identical.jsonl").write_text(write_recording(long))
    return made


@pytest.fixture(scope="module")
def _offering(folder: Path) -> Iterator[Served]:
    served = Served(options(), folder)
    yield served
    served.demo.close()


@pytest.fixture
def offering(_offering: Served) -> Served:
    """The scripted page with recordings on offer, its engine as new."""
    _offering.engine.__init__()  # type: ignore[misc]
    _offering.engine.pause = 0.01
    return _offering


def choose(tab: Any, name: str) -> None:
    if not tab.page.locator("#watch").is_visible():
        tab.page.click("#recordings > button")
    tab.page.click("#recording input")
    tab.page.click(f"[role=option]:has-text('{name}')")


def watch(tab: Any, name: str) -> None:
    choose(tab, name)
    tab.begin("#watch")
    tab.page.wait_for_selector(".recorded")


def speed(tab: Any, name: str) -> None:
    tab.page.click("#speed input")
    tab.page.click(f"[role=option]:has-text('{name}')")


def open_file(tab: Any, path: Path) -> None:
    tab.page.click("#recordings > button")
    tab.page.wait_for_selector("#open-recording")
    tab.page.set_input_files("#recordings input[type=file]", str(path))


def state(tab: Any) -> dict[str, str]:
    """Everything that a run leaves on the page."""
    return {
        part: tab.page.inner_html(f"#{part} {inner}")
        for part, inner in (
            ("stream", ".stream"),
            ("tiles", ".tiles"),
            ("sidecar", ".tags"),
            ("standalone", ".tags"),
        )
    }


@pytest.mark.slow
@pytest.mark.essential
def test_a_saved_run_opened_again_ends_as_the_run_did_and_says_what_it_is(
    visit: Any, served: Served, tmp_path: Path
) -> None:
    tab = visit(served.url)
    tab.run()
    path = tmp_path / "run.jsonl"
    path.write_text(tab.saved(), encoding="utf-8")
    header = read_recording(path.read_bytes()).header
    calls = served.engine.calls
    other = visit(served.url)
    other.begin("#status")
    open_file(other, path)
    other.wait("done")
    assert state(other) == state(tab)
    banner = other.text("#banner")
    for words in ("This is a recording", "toy", "fp32", header.machine, header.date[:10]):
        assert words in banner
    assert other.page.locator("#runs .quiet").count() == 1
    assert served.engine.calls == calls


def test_the_banner_stays_in_sight_until_a_live_run_begins(visit: Any, offering: Served) -> None:
    tab = visit(offering.url)
    assert not tab.page.locator("#player").is_visible()
    watch(tab, "The plant – Identical")
    tab.wait("done")
    tab.page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    box = tab.page.locator("#banner").bounding_box()
    assert 0 <= box["y"] < 900
    assert "This is a recording" in tab.text("#banner")
    tab.run()
    assert not tab.page.locator("#player").is_visible()
    assert tab.page.locator("#runs tbody tr").count() == 1


def test_a_recording_brings_its_article_its_settings_and_its_comparison(
    visit: Any, offering: Served
) -> None:
    tab = visit(offering.url)
    tab.page.fill("#article textarea", "")
    watch(tab, "Suffix visible")
    tab.wait("done")
    assert tab.page.input_value("#article textarea") == EXAMPLE
    assert not tab.page.is_checked("#suffix-masking input")
    assert "as with identical prompts in run 1" in tab.text("#note")
    tab.page.wait_for_function(
        "document.querySelectorAll('#chart .scatterlayer .trace').length >= 2"
    )
    assert "identical #1" in tab.text("#chart")


def test_a_recording_leaves_a_visitors_own_article_where_it_is(
    visit: Any, offering: Served
) -> None:
    tab = visit(offering.url)
    tab.page.fill("#article textarea", "Something of my own.")
    watch(tab, "Suffix visible")
    tab.wait("done")
    assert tab.page.input_value("#article textarea") == "Something of my own."


def test_it_can_be_held_stepped_through_and_played_to_its_end(visit: Any, offering: Served) -> None:
    tab = visit(offering.url)
    watch(tab, "Unending")
    assert not tab.page.is_enabled("#forward")
    tab.page.wait_for_selector("#summary .t")
    tab.page.click("#pause")
    tab.page.wait_for_selector("#play:not([disabled])")
    tab.page.wait_for_selector("#status :text('paused at round')")
    speed(tab, "instant")
    tab.page.click("#play")
    tab.page.wait_for_selector("#status .status.done")
    assert "some199" in tab.summary()
    assert tab.page.is_enabled("#start")
    for step, expected in (("#back", 200), ("#back", 199), ("#back", 198), ("#forward", 199)):
        tab.page.click(step)
        tab.page.wait_for_selector(f"#status :text('paused at round {expected} of 200')")
        tab.page.wait_for_function(
            "(marks) => document.querySelectorAll('#summary .round').length === marks",
            arg=expected - 1,
        )


def test_the_pages_stop_holds_a_recording_too(visit: Any, offering: Served) -> None:
    tab = visit(offering.url)
    watch(tab, "Unending")
    tab.page.click("#stop")
    tab.page.wait_for_selector("#status :text('paused')")
    assert tab.page.is_enabled("#start")


def test_a_scenario_takes_the_place_of_a_recording(visit: Any, offering: Served) -> None:
    tab = visit(offering.url)
    watch(tab, "Unending")
    tab.page.wait_for_selector("#summary .t")
    tab.page.click("#scenario-suffix-masked")
    tab.page.wait_for_selector("#status :text('Done in 3.0 s')")
    assert not tab.page.locator("#player").is_visible()
    assert "some0" not in tab.summary()


def test_two_visitors_watch_at_once_and_never_touch_the_models(
    visit: Any, offering: Served
) -> None:
    tabs = [visit(offering.url) for _ in range(2)]
    for tab, name in zip(tabs, ("The plant – Identical", "Unending"), strict=True):
        watch(tab, name)
    tabs[0].wait("done")
    assert "some0" not in tabs[0].summary()
    assert "plant" not in tabs[1].summary()
    assert offering.engine.calls == 0


def test_a_tab_that_is_closed_ends_its_replay(
    visit: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recordings, "AT_ONCE", 1)
    served = Served(options(), folder)
    try:
        first, second = visit(served.url), visit(served.url)
        watch(first, "Unending")
        first.page.close()
        choose(second, "The plant – Identical")
        for _ in range(20):  # refused until the server heard that the first one is gone
            second.page.click("#watch")
            second.page.wait_for_timeout(1000)
            if second.page.locator(".recorded").count():
                break
        second.wait("done")
    finally:
        served.demo.close(verbose=False)


@pytest.mark.slow
@pytest.mark.essential
def test_while_models_load_the_page_offers_recordings_and_plays_them(
    browser: Any, folder: Path
) -> None:
    never = threading.Event()
    host = ModelHost(lambda progress: (never.wait() and ScriptedEngine(), ""))  # type: ignore[arg-type,return-value]
    host.start()
    with page_of(host, (), folder) as url:
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(url)
        page.click("[data-do=recordings]")
        page.click("#watch")
        page.wait_for_selector("#status .status.done")
        assert "plant" in page.inner_text("#summary")
        assert "This is a recording" in page.inner_text("#banner")
        page.close()
    never.set()


def test_a_page_without_recordings_offers_only_to_open_one(visit: Any, tmp_path: Path) -> None:
    served = Served(options(), tmp_path)
    try:
        tab = visit(served.url)
        tab.page.click("#recordings > button")
        tab.page.wait_for_selector("#open-recording")
        assert not tab.page.locator("#watch").is_visible()
        assert not tab.page.locator("#recording").is_visible()
        assert tab.page.locator("[data-do=recordings]").count() == 0
        tab.context.close()
    finally:
        served.demo.close()


def test_a_visitors_own_article_is_in_the_file_only_if_asked_for(
    visit: Any, served: Served
) -> None:
    tab = visit(served.url)
    tab.page.fill("#article textarea", "A secret <b>plant</b> of mine.")
    tab.run()
    for button in ("#save", "#save-page"):
        assert "secret" not in tab.saved(button)
    assert json.loads(tab.saved().split("\n")[0])["article"] == ""
    tab.page.check("#with-article input")
    header = json.loads(tab.saved().split("\n")[0])
    assert header["article"] == "A secret <b>plant</b> of mine."
    tab.page.fill("#article textarea", "Another one.")
    tab.page.click("#save")
    tab.page.wait_for_selector("text=no longer on the page")


def test_the_saved_page_is_that_of_the_recording(visit: Any, served: Served) -> None:
    tab = visit(served.url)
    tab.run()
    page = tab.saved("#save-page")
    assert page.startswith("<!doctype html>")
    assert "This is a recording" in page
    assert f"{REPORT.alpha:.3f}" in page


def test_a_shared_recording_opens_at_its_end_with_all_that_was_seen(
    visit: Any, offering: Served
) -> None:
    tab = visit(offering.url, permissions=["clipboard-read", "clipboard-write"])
    watch(tab, "Suffix visible")
    tab.wait("done")
    tab.page.click("[data-do=share]")
    tab.page.wait_for_selector("#toast.on")
    link = tab.page.evaluate("navigator.clipboard.readText()")
    assert link == f"{offering.url}?recording=plant-suffix-visible"
    other = visit(link)
    other.page.wait_for_selector(".recorded[data-scenario=suffix-visible]")
    assert state(other) == state(tab)
    assert other.text("#note") == tab.text("#note")
    assert not other.page.is_checked("#suffix-masking input")
    strange = visit(f"{offering.url}?recording=../secrets")
    strange.page.wait_for_selector("text=This link names a recording that is not here")


def test_a_file_that_is_no_recording_is_refused_in_words(
    visit: Any, served: Served, tmp_path: Path
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(write_recording(recorded()).replace('"toy"', "5"))
    tab = visit(served.url)
    open_file(tab, path)
    tab.page.wait_for_selector("text=Line 1 of the recording is invalid")
    assert not tab.page.locator("#player").is_visible()
    tab.run()


def test_attacks_in_an_opened_file_are_shown_and_inert(
    visit: Any, served: Served, tmp_path: Path
) -> None:
    attack = f"<script>window.hit=1</script>{HOSTILE.replace('alert', 'window.hit=')}"
    attack += "${window.hit=1}{{constructor.constructor('window.hit=1')()}}"
    events = [
        dataclasses.replace(started(), pair=attack),
        *one_round(0, [(attack, 0.9)], (attack, 0.2), attack),
        *whole_run(tag=attack)[-8:],
    ]
    whole = record(events).named(attack, attack)
    header = dataclasses.replace(whole.header, pair=attack, machine=attack)
    begun = dataclasses.replace(whole.started, pair=attack)
    path = tmp_path / "attack.jsonl"
    path.write_text(write_recording(Recording(header, (begun, *whole.events[1:]))))
    tab = visit(served.url)
    tab.begin("#status")
    open_file(tab, path)
    tab.wait("done")
    assert attack in tab.page.inner_text("#banner")
    assert tab.page.locator("#board img, #below img, #player img, #board script").count() == 0
    assert tab.page.evaluate("window.hit") is None


def test_the_first_view_still_holds_everything_beside_the_banner(
    visit: Any, offering: Served
) -> None:
    tab = visit(offering.url)
    watch(tab, "The plant – Identical")
    tab.page.wait_for_function("window.scrollY === 0")
    tab.wait("done")
    parts = ("#banner", "#article", "#start", "#summary", "#chart", "#sidecar", "#standalone")
    for part in parts:
        box = tab.page.locator(part).bounding_box()
        assert box["y"] >= 0, part
        assert box["y"] + box["height"] <= 900, part


def test_on_a_phone_a_recording_is_no_wider_than_the_screen(visit: Any, offering: Served) -> None:
    tab = visit(offering.url, width=390, height=844, has_touch=True)
    watch(tab, "Unending")
    tab.page.wait_for_selector("#summary .t")
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390
    box = tab.page.locator("#banner").bounding_box()
    assert 0 <= box["y"] < 844


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_the_bar_and_the_shelf(
    visit: Any, offering: Served, theme: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    tab = visit(f"{offering.url}?__theme={theme}")
    watch(tab, "The plant – Identical")
    tab.wait("done")
    found = axe.Axe().run(tab.page).response["violations"]
    serious = [
        f"{v['id']}: {n['html'][:160]}"
        for v in found
        if v["impact"] in ("serious", "critical")
        for n in v["nodes"]
    ]
    assert serious == []
