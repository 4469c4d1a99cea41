"""The page in a real browser, over a scripted engine: what does not need a model to be shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from sidecar_core.recording import record
from sidecar_core.report import RunReport
from sidecar_core.scenarios import SCENARIOS
from sidecar_core.settings import RunSettings
from sidecar_core.view.recording_page import recording_page
from tests.runs import HOSTILE, one_round, started, whole_run
from tests.served import Served

pytestmark = pytest.mark.browser

REPORT = RunReport.of(whole_run())


@pytest.mark.essential
def test_a_run_shows_the_engines_numbers(visit: Any, served: Served) -> None:
    tab = visit(served.url)
    assert tab.figure("α") == "–"
    tab.run()
    assert tab.figure("α") == f"{REPORT.alpha:.3f}"
    assert tab.figure("Acceptance") == f"{REPORT.acceptance_rate:.0%}"
    assert tab.figure("Tokens per pass") == f"{REPORT.tokens_per_pass:.2f}"
    assert tab.figure("× plain decoding") == f"{REPORT.speedup:.2f}"
    assert "#plant" in tab.text("#sidecar")
    assert "#closed" in tab.text("#standalone")
    assert "68 tokens" in tab.text("#sidecar")


@pytest.mark.essential
def test_markup_from_article_and_model_is_shown_and_inert(visit: Any, served: Served) -> None:
    attacks = f"<script>window.hit=1</script>{HOSTILE.replace('alert', 'window.hit=')}"
    attacks += "${window.hit=1}{{constructor.constructor('window.hit=1')()}}"
    served.engine.events = lambda settings: [
        started(),
        *one_round(0, [(attacks, 0.9)], (attacks, 0.2), attacks),
        *whole_run(settings, tag=attacks)[-5:],
    ]
    tab = visit(served.url)
    tab.page.fill("#article textarea", attacks)
    tab.run()
    assert attacks in tab.page.inner_text("#summary")
    assert tab.page.locator("#board img, #below img, #board script").count() == 0
    assert tab.page.evaluate("window.hit") is None


@pytest.mark.parametrize("width", [390, 820, 1440])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_is_wider_than_the_page(visit: Any, served: Served, width: int, theme: str) -> None:
    tab = visit(f"{served.url}?__theme={theme}", width=width, height=844)
    tab.run()
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_first_view_holds_input_stream_alpha_and_both_columns(
    visit: Any, served: Served
) -> None:
    tab = visit(served.url)
    tab.run()
    for part in ("#article", "#start", "#stop", "#summary", "#chart", "#sidecar", "#standalone"):
        box = tab.page.locator(part).bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 900, part
        assert box["x"] + box["width"] <= 1440, part


def test_nothing_moves_while_a_run_goes_on(visit: Any, served: Served) -> None:
    tab = visit(served.url)
    parts = ("#summary", "#chart", "#sidecar", "#standalone", "#map")

    def places() -> list[Any]:
        return [tab.page.locator(part).bounding_box() for part in parts]

    before = places()
    tab.run()
    tab.run("#scenario-document-attended")
    assert [p["y"] for p in places()] == [p["y"] for p in before]


@pytest.mark.slow
@pytest.mark.essential
def test_every_toggle_redraws_the_map_before_any_run(visit: Any, served: Served) -> None:
    tab = visit(served.url)
    hidden = tab.page.locator("#map td.masked")
    assert hidden.count() == 2
    tab.page.click("#suffix-masking input")
    tab.page.wait_for_function("document.querySelectorAll('#map td.masked').length === 1")
    tab.page.click("#document-masking input")
    tab.page.wait_for_function("document.querySelectorAll('#map td.masked').length === 0")


def test_the_map_and_the_count_follow_the_article(visit: Any, served: Served) -> None:
    tab = visit(served.url)
    tab.page.fill("#article textarea", "one two three")
    tab.page.wait_for_function("document.querySelector('#count').innerText.startsWith('3 of')")
    assert "3" in tab.page.locator("#map thead th").nth(1).inner_text()


def test_an_example_is_named_only_while_its_text_is_on_the_page(
    visit: Any, served: Served, tmp_path: Any
) -> None:
    tab = visit(served.url)

    def named(title: str) -> None:
        tab.page.wait_for_function(
            "(title) => document.querySelector('#example input').value === title", arg=title
        )

    named("The plant")
    tab.page.fill("#article textarea", "Words of my own.")
    named("")
    tab.page.click("#example input")
    tab.page.get_by_role("option", name="Other").click()
    tab.page.wait_for_function(
        "document.querySelector('#article textarea').value === 'Some other article.'"
    )
    tab.run()
    named("Other")
    path = tmp_path / "mine.txt"
    path.write_text("A file of mine.", encoding="utf-8")
    tab.page.set_input_files("input[type=file]", str(path))
    named("")


def test_an_article_is_set_from_the_side_of_its_script(visit: Any, served: Served) -> None:
    tab = visit(served.url)
    tab.page.fill("#article textarea", "\u0627\u0644\u0642\u0645\u062d.")
    style = "getComputedStyle(document.querySelector('#article textarea'))"
    assert tab.page.evaluate(f"[{style}.unicodeBidi, {style}.textAlign]") == ["plaintext", "start"]


def test_fingers_find_room_on_a_phone(visit: Any, served: Served) -> None:
    tab = visit(served.url, width=390, height=844, has_touch=True, is_mobile=True)
    tab.page.click("#more > button")
    tab.page.wait_for_selector("#gamma input")
    small = tab.page.evaluate(
        """() => [...document.querySelectorAll('button, .options label, input[type=number]')]
             .filter((e) => e.checkVisibility({ visibilityProperty: true }))
             .filter((e) => e.tabIndex >= 0 && !e.closest('footer'))
             .filter((e) => e.getBoundingClientRect().height < 24)
             .map((e) => e.outerHTML.slice(0, 120))"""
    )
    assert small == []


def test_an_article_that_is_too_long_can_be_cut_on_request(visit: Any, served: Served) -> None:
    tab = visit(served.url)
    tab.page.fill("#article textarea", "word " * 300)
    tab.page.wait_for_selector("#count .over")
    assert "300 tokens" in tab.text("#count")
    tab.page.click("#trim")
    tab.page.wait_for_selector("#trim", state="hidden")
    assert tab.page.input_value("#article textarea").split() == ["word"] * 200
    tab.run()


def test_a_switch_that_is_flipped_during_a_scenario_stays(visit: Any, served: Served) -> None:
    tab = visit(served.url)
    served.engine.pause = 0.2
    tab.page.click("#scenario-document-masked")
    tab.page.wait_for_selector("#status .status.busy")
    tab.page.wait_for_selector("#stream .acc")
    tab.page.uncheck("#document-masking input")
    tab.page.wait_for_selector("#status .status.done")
    assert not tab.page.is_checked("#document-masking input")


@pytest.mark.essential
def test_an_error_shows_in_the_status_line_and_the_next_run_works(
    visit: Any, served: Served
) -> None:
    tab = visit(served.url)
    tab.page.fill("#article textarea", "   ")
    tab.page.click("#start")
    tab.page.wait_for_selector("text=The article is empty")
    tab.page.fill("#article textarea", "The plant closed.")
    tab.run()


@pytest.mark.slow
@pytest.mark.essential
def test_earlier_runs_stay_as_ghosts_and_in_the_table(visit: Any, served: Served) -> None:
    tab = visit(served.url)
    tab.run()
    tab.page.click("#suffix-masking input")
    tab.run()
    assert tab.page.locator("#chart .scatterlayer .trace").count() >= 2
    assert tab.page.locator("#runs tbody tr").count() == 2
    tab.page.fill("#article textarea", "Something else.")
    tab.page.wait_for_selector("#runs .quiet")


@pytest.mark.slow
@pytest.mark.essential
@pytest.mark.parametrize("key", [scenario.key for scenario in SCENARIOS])
def test_one_click_runs_a_scenario_and_says_what_came_out(
    visit: Any, served: Served, key: str
) -> None:
    tab = visit(served.url)
    tab.run(f"#scenario-{key}")
    note = tab.text("#note")
    if key in ("identical", "suffix-visible", "suffix-masked"):
        assert tab.figure("α") in note
    else:
        assert "68 tokens" in note
    suffix = tab.page.is_checked("#suffix-masking input")
    document = tab.page.is_checked("#document-masking input")
    assert (suffix, document) == (key != "suffix-visible", key != "document-attended")


@pytest.mark.slow
@pytest.mark.essential
def test_every_run_ends_in_a_conclusion_that_is_read_aloud(visit: Any, served: Served) -> None:
    tab = visit(served.url)
    tab.run()
    said = tab.page.locator("#note [aria-live=polite]")
    assert f"α is {REPORT.alpha:.3f} with the suffix masked" in said.inner_text()
    place = tab.page.locator("#note").bounding_box()
    tab.page.click("#suffix-masking input")
    tab.run()
    words = said.inner_text()
    assert "with the suffix visible, as with the suffix masked in run 1" in words
    assert "the same, token for token" in words
    assert tab.page.locator("#note").bounding_box() == place
    assert "±0.000 against masked" in tab.text("#tiles")
    assert words.split(". No leaks")[0] in tab.saved("#save-page")


def test_rejected_drafts_and_rounds_can_be_switched(visit: Any, served: Served) -> None:
    tab = visit(served.url)
    tab.run()
    rejected = tab.page.locator("#summary .rej").first
    assert rejected.is_visible()
    tab.page.uncheck("[data-show=rejected]")
    assert not rejected.is_visible()
    assert not tab.page.locator("#summary .round").first.is_visible()
    tab.page.check("[data-show=rounds]")
    assert tab.page.locator("#summary .round").first.is_visible()


def test_the_copied_summary_has_no_rejected_words(visit: Any, served: Served) -> None:
    tab = visit(served.url, permissions=["clipboard-read", "clipboard-write"])
    tab.run()
    tab.page.click("[data-do=copy]")
    tab.page.wait_for_selector("#toast.on")
    assert tab.page.evaluate("navigator.clipboard.readText()") == REPORT.text


SELECT = """() => {
  const box = document.getElementById("summary"), range = document.createRange();
  range.selectNodeContents(box);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
  return getSelection().toString();
}"""


def drag_over(page: Any) -> None:
    """Select the summary with the mouse, from before its first token to behind its last."""
    tokens = page.locator("#summary .t")
    first, last = tokens.first.bounding_box(), tokens.last.bounding_box()
    page.mouse.move(first["x"] + 1, first["y"] + first["height"] / 2)
    page.mouse.down()
    page.mouse.move(last["x"] + last["width"] + 20, last["y"] + last["height"] - 2, steps=8)
    page.mouse.up()


def copied(page: Any) -> str:
    page.keyboard.press("Control+C")
    return str(page.evaluate("navigator.clipboard.readText()"))


def rejecting(settings: RunSettings) -> list[Any]:
    """A run with a rejected token in its middle and at its end."""
    return [
        started(settings),
        *one_round(0, [("The", 0.9), (" plant", 0.8)], (" factory", 0.2), " burned"),
        *one_round(1, [(" down", 0.9)], (" overnight", 0.2), "."),
        *whole_run(settings)[-5:],
    ]


def test_what_the_mouse_selects_in_the_summary_copies_without_the_rejected_drafts(
    visit: Any, served: Served
) -> None:
    served.engine.events = rejecting
    tab = visit(served.url, permissions=["clipboard-read", "clipboard-write"])
    tab.run()
    assert tab.page.locator("#summary .rej").count() == 2
    assert tab.page.evaluate(SELECT).strip() == "The plant burned down."
    drag_over(tab.page)
    assert copied(tab.page).strip() == "The plant burned down."


def test_a_recordings_file_copies_without_the_rejected_drafts_too(
    visit: Any, served: Served, tmp_path: Path
) -> None:
    file = tmp_path / "run.html"
    recording = record(rejecting(RunSettings())).named("Plant", "The plant burned down.")
    file.write_text(recording_page(recording), encoding="utf-8")
    tab = visit(served.url, permissions=["clipboard-read", "clipboard-write"])
    page = tab.context.new_page()
    page.goto(file.as_uri())
    assert page.locator("#summary .rej").count() == 2
    assert page.evaluate(SELECT).strip() == "The plant burned down."
    drag_over(page)
    page.keyboard.press("Control+C")
    tab.page.bring_to_front()
    assert tab.page.evaluate("navigator.clipboard.readText()").strip() == "The plant burned down."


def test_the_saved_run_is_the_events_that_were_shown(visit: Any, served: Served) -> None:
    from sidecar_core.recording import read_recording

    tab = visit(served.url)
    tab.run()
    assert list(read_recording(tab.saved()).events) == whole_run()


def test_a_copied_link_opens_the_page_with_its_settings(visit: Any, served: Served) -> None:
    tab = visit(served.url, permissions=["clipboard-read", "clipboard-write"])
    tab.page.click("#suffix-masking input")
    tab.page.click("#more > button")
    tab.page.click("#draft-prompt label:has-text('unrelated')")
    tab.page.fill("#draft-text textarea, #draft-text input", "Hello & goodbye")
    tab.page.fill("#article textarea", "Words of mine.")
    link = shared(tab)
    assert "Words" not in link
    assert "your article is not in it" in tab.text("#toast")
    other = visit(link)
    other.page.wait_for_function("!document.querySelector('#suffix-masking input').checked")
    other.page.click("#more > button")
    assert other.page.input_value("#draft-text textarea, #draft-text input") == "Hello & goodbye"


def shared(tab: Any) -> str:
    """The address that the button Share copies."""
    tab.page.click("[data-do=share]")
    tab.page.wait_for_selector("#toast.on")
    return str(tab.page.evaluate("navigator.clipboard.readText()"))


def test_a_shared_scenario_brings_its_example(visit: Any, served: Served) -> None:
    tab = visit(served.url, permissions=["clipboard-read", "clipboard-write"])
    tab.page.fill("#article textarea", "Some other article.")
    tab.run("#scenario-suffix-visible")
    link = shared(tab)
    assert "example=other&scenario=suffix-visible" in link
    other = visit(link)
    other.page.wait_for_selector("#note :text('Suffix visible')")
    assert other.page.input_value("#article textarea") == "Some other article."
    assert not other.page.is_checked("#suffix-masking input")
    other.page.fill("#article textarea", "Mine.")
    other.page.press("#article textarea", "!")
    assert "example" not in other.page.url


def test_the_address_follows_what_is_shown(visit: Any, served: Served) -> None:
    tab = visit(served.url)
    assert "?" not in tab.page.url
    tab.page.click("#suffix-masking input")
    tab.page.wait_for_function("location.search.includes('suffix')")
    other = visit(tab.page.url)
    other.page.wait_for_function("!document.querySelector('#suffix-masking input').checked")


def test_a_round_and_its_tokens_mark_each_other(visit: Any, served: Served) -> None:
    tab = visit(served.url)
    tab.run("#scenario-suffix-masked")
    token = tab.page.locator("#summary .t[data-round='2']:not(.blank)").first
    token.hover()
    tab.page.wait_for_selector("#chart .point.of-round")
    assert tab.page.locator("#summary .t.of-round:not([data-round='2'])").count() == 0
    tab.page.hover("h1")
    tab.page.wait_for_function("!document.querySelector('.of-round')")
    tab.page.locator("#chart .point").first.hover(force=True)
    tab.page.wait_for_selector("#summary .t.of-round[data-round='1']")


def test_a_leaked_tag_leads_to_its_words_by_mouse_and_by_key(visit: Any, served: Served) -> None:
    lines = [f"Line {n}." for n in range(40)]
    article = "\n".join([*lines, "The  Broken Arrow\nline <b>is</b> gone.", *lines])
    served.engine.events = lambda settings: whole_run(settings, tag="brokenarrow")
    tab = visit(served.url)
    tab.page.fill("#article textarea", article)
    tab.run("#scenario-document-attended")
    marked = """() => {
      const box = document.querySelector("#article textarea");
      return [box.value.slice(box.selectionStart, box.selectionEnd), box.scrollTop > 300];
    }"""
    tag = tab.page.locator("#sidecar button.tag").first
    tag.click()
    words, scrolled = tab.page.evaluate(marked)
    assert words.startswith("The  Broken Arrow")
    assert scrolled
    tab.page.evaluate("document.querySelector('#article textarea').setSelectionRange(0, 0)")
    tag.focus()
    tab.page.keyboard.press("Enter")
    assert tab.page.evaluate(marked)[0] == words
    tab.page.fill("#article textarea", "Something else.")
    tag.click()
    tab.page.wait_for_selector("#toast.on:has-text('is not in the article')")


def test_results_of_another_article_are_greyed_and_said_to_be(visit: Any, served: Served) -> None:
    tab = visit(served.url)
    tab.run("#scenario-suffix-masked")
    faded = "Number(getComputedStyle(document.querySelector('#tiles')).opacity) < 1"
    assert not tab.page.evaluate(faded)
    tab.page.click("#example input")
    tab.page.get_by_role("option", name="Other").click()
    tab.page.wait_for_selector("#stale :text('another article')")
    assert tab.page.evaluate(faded)
    assert not tab.page.locator("#note").is_visible()
    tab.run()
    assert not tab.page.evaluate(faded)
    assert "α is" in tab.text("#note")


def test_before_any_run_sentences_stand_where_figures_will(visit: Any, served: Served) -> None:
    tab = visit(served.url)
    seen = tab.page.locator("body").evaluate(
        """(body) => [...body.querySelectorAll("dd")]
             .filter((e) => e.checkVisibility({ visibilityProperty: true }))
             .map((e) => e.innerText)"""
    )
    assert "how far draft and target agree" in seen
    assert "–" not in seen


def test_a_link_with_nonsense_opens_the_page_with_a_warning(visit: Any, served: Served) -> None:
    tab = visit(f"{served.url}?gamma=<script>&scenario=x")
    tab.page.wait_for_selector("text=The page opened with the default settings")
    tab.run()


def test_a_text_file_can_be_uploaded(visit: Any, served: Served, tmp_path: Any) -> None:
    path = tmp_path / "mine.md"
    path.write_text("# Mine\n\nWords of my own: é ü 🍦.", encoding="utf-8")
    tab = visit(served.url)
    tab.page.set_input_files("input[type=file]", str(path))
    tab.page.wait_for_function(
        "document.querySelector('#article textarea').value.startsWith('# Mine')"
    )
    assert "🍦" in tab.page.input_value("#article textarea")


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf \n\t"])
def test_an_empty_file_is_refused_and_leaves_the_article(
    visit: Any, served: Served, tmp_path: Any, content: bytes
) -> None:
    file = tmp_path / "empty.txt"
    file.write_bytes(content)
    tab = visit(served.url)
    tab.page.fill("#article textarea", "What I pasted.")
    tab.page.set_input_files("input[type=file]", str(file))
    tab.page.wait_for_selector("text=The file is empty")
    assert tab.page.input_value("#article textarea") == "What I pasted."


def test_everything_needed_for_a_run_can_be_reached_by_keyboard(visit: Any, served: Served) -> None:
    tab = visit(served.url)
    seen = set()
    for _ in range(40):
        tab.page.keyboard.press("Tab")
        seen.add(tab.page.evaluate("document.activeElement.closest('[id]')?.id"))
        if tab.page.evaluate("document.activeElement.id") == "start":
            break
    assert {"article", "suffix-masking", "document-masking"} <= seen
    tab.page.keyboard.press("Enter")
    tab.wait("done")


def test_who_goes_by_key_sees_where_they_are(visit: Any, served: Served) -> None:
    tab = visit(served.url)
    tab.page.click("#more > button")
    tab.page.wait_for_selector("#seed input")
    seen: dict[str, str] = {}
    for _ in range(60):
        tab.page.keyboard.press("Tab")
        seen |= tab.page.evaluate(
            """() => {
              const at = document.activeElement;
              if (at === document.body) return {}; // behind the last button
              const name = `${at.closest("[id]")?.id} ${at.type}`;
              return { [name]: getComputedStyle(at).outlineStyle };
            }"""
        )
    assert {"suffix-masking checkbox", "draft-prompt radio", "seed number"} <= set(seen)
    assert "none" not in seen.values(), seen


def test_the_view_follows_the_stream_only_for_readers_at_its_end(
    visit: Any, served: Served
) -> None:
    served.engine.events = lambda settings: [
        started(),
        *(e for n in range(60) for e in one_round(n, [(f" some{n} words\n", 0.9)] * 3, own=" x")),
        *whole_run(settings)[-5:],
    ]
    served.engine.pause = 0.004
    tab = visit(served.url)
    tab.begin()
    tab.page.wait_for_function(
        "(s => s.scrollHeight > 2 * s.clientHeight)(document.getElementById('summary'))"
    )
    tab.page.wait_for_function(
        "(s => s.scrollHeight - s.scrollTop - s.clientHeight < 30)"
        "(document.getElementById('summary'))"
    )
    tab.page.evaluate("document.getElementById('summary').scrollTop = 0")
    tab.wait("done")
    assert tab.page.evaluate("document.getElementById('summary').scrollTop") == 0


def test_bigger_and_darker_are_a_click_away(visit: Any, served: Served) -> None:
    tab = visit(f"{served.url}?__theme=light", width=1920, height=1080)
    height = tab.page.locator("#start").bounding_box()["height"]
    tab.page.click("[data-do=size]")
    assert tab.page.locator("#start").bounding_box()["height"] > 1.2 * height
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 1920
    paper = "getComputedStyle(document.querySelector('.gradio-container')).backgroundColor"
    light = tab.page.evaluate(paper)
    tab.page.click("[data-do=theme]")
    assert tab.page.evaluate(paper) != light


def test_the_chart_keeps_its_names_in_sight_when_the_page_becomes_bigger(
    visit: Any, served: Served
) -> None:
    tab = visit(served.url, width=1280, height=900)
    tab.run()
    tab.page.wait_for_selector("#chart .annotation text")
    tab.page.click("[data-do=size]")
    tab.page.wait_for_function(
        """() => {
          const right = (selector) => Math.max(...[...document.querySelectorAll(selector)]
            .map((node) => node.getBoundingClientRect().right));
          return right("#chart .annotation text") <= right("#chart-card")
            && right("#runs th") <= right("#runs-card");
        }"""
    )


@pytest.mark.slow
@pytest.mark.essential
def test_two_visitors_see_only_their_own(visit: Any, served: Served) -> None:
    served.engine.events = lambda settings: whole_run(settings, tag=f"seed{settings.seed}")
    served.engine.pause = 0.02
    tabs = [visit(f"{served.url}?seed={seed}") for seed in (1, 2)]
    for tab in tabs:
        tab.begin()
    for tab in tabs:
        tab.wait("done")
    assert [re.findall(r"#(seed\d)", tab.text("#sidecar")) for tab in tabs] == [
        ["seed1"],
        ["seed2"],
    ]
    assert [tab.page.locator("#runs tbody tr").count() for tab in tabs] == [1, 1]


@pytest.mark.essential
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(visit: Any, served: Served, theme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    tab = visit(f"{served.url}?__theme={theme}")
    tab.run()
    tab.page.click("#more > button")
    tab.page.click("#how > button")
    tab.page.wait_for_selector("#how-text")
    found = axe.Axe().run(tab.page).response["violations"]
    serious = [
        f"{v['id']}: {n['html'][:160]}"
        for v in found
        if v["impact"] in ("serious", "critical")
        for n in v["nodes"]
    ]
    assert serious == []


def test_default_settings_are_what_the_page_opens_with(visit: Any, served: Served) -> None:
    tab = visit(served.url)
    defaults = RunSettings()
    assert tab.page.is_checked("#suffix-masking input") == defaults.suffix_masking
    assert tab.page.is_checked("#document-masking input") == defaults.document_masking


def choose_task(tab: Any, label: str) -> None:
    tab.page.click("#task input")
    tab.page.get_by_role("option", name=label).click()


def test_the_sidecar_writes_what_was_chosen(visit: Any, served: Served) -> None:
    asked: list[RunSettings] = []
    served.engine.events = lambda settings: asked.append(settings) or whole_run(settings)
    tab = visit(served.url)
    choose_task(tab, "Headline")
    tab.run()
    assert asked[0].task == "headline"
    assert tab.text("#sidecar h2") == "Sidecar headline"
    assert tab.text("#standalone h2") == "Standalone headline"
    assert tab.page.locator("#sidecar .chip").count() == 0
    assert "plant" in tab.text("#sidecar .answer")


def test_a_task_in_the_visitors_own_words_reaches_the_engine(visit: Any, served: Served) -> None:
    asked: list[RunSettings] = []
    served.engine.events = lambda settings: asked.append(settings) or whole_run(settings)
    tab = visit(served.url)
    assert not tab.page.is_visible("#task-suffix")
    choose_task(tab, "Your own …")
    tab.page.wait_for_selector("#task-suffix textarea")
    choice, words = (tab.page.locator(x).bounding_box() for x in ("#task", "#task-suffix"))
    assert choice["y"] < words["y"]
    tab.begin()
    tab.page.get_by_text("needs an instruction").first.wait_for()
    tab.page.fill("#task-suffix textarea", "Then ask one question.")
    tab.page.fill("#task-cue textarea", "Question:")
    tab.run()
    settings = asked[0]
    assert (settings.task_suffix, settings.task_cue) == ("Then ask one question.", "Question:")
    assert tab.text("#sidecar h2") == "Sidecar answer"
