"""The token stream, the tiles and the status line are pure, safe and append only."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from sidecar_core.events import (
    Event,
    SummaryFinished,
    TokenAccepted,
    TokenBonus,
    TokenCorrected,
    TokenDrafted,
    TokenRejected,
)
from sidecar_core.report import RunReport
from sidecar_core.view.render import StreamHtml, status, tiles, token, token_tip
from tests.runs import one_round, whole_run

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><b>',
    "${1+1}",
    "{{value}}",
)


class Page(HTMLParser):
    """What a browser would make of a fragment: its elements, and its text without some of them."""

    def __init__(self, fragment: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.kept = ""
        self._hidden = 0
        self.feed(fragment)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._hidden += tag == "del"

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag == "del"

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.kept += data


def folded(events: list[Event]) -> StreamHtml:
    stream = StreamHtml()
    for event in events:
        stream.add(event)
    return stream


def test_the_stream_only_ever_appends() -> None:
    stream = StreamHtml()
    before = ""
    for event in whole_run():
        stream.add(event)
        assert stream.done.startswith(before)
        before = stream.done
    assert before


def test_the_text_without_rejected_tokens_is_the_summary() -> None:
    events = whole_run()
    summary = next(e.text for e in events if isinstance(e, SummaryFinished))
    assert Page(folded(events).done).kept == summary


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize(
    "kind", [TokenAccepted, TokenRejected, TokenCorrected, TokenBonus, TokenDrafted]
)
def test_markup_in_a_token_is_text(kind: type, hostile: str) -> None:
    fragment = token(kind(0, 0, 1, hostile, 0.5, 0.5, 0.5, 0.5, 0.0))
    page = Page(fragment)
    assert [tag for tag, _ in page.elements] in (["span"], ["del"])
    assert set(page.elements[0][1]) <= {"class", "title", "data-round", "data-why", "data-overlap"}
    assert hostile in Page(fragment.replace("del", "span")).kept


def test_accepted_rejected_corrected_and_bonus_differ_in_their_class() -> None:
    events = [*one_round(0, [("a", 0.9)], ("b", 0.2), "c"), *one_round(1, [("d", 0.9)], own="e")]
    words = re.findall(r'class="t (\w+)"[^>]*>(\w)<', folded(events).done)
    assert words == [("acc", "a"), ("rej", "b"), ("cor", "c"), ("acc", "d"), ("bon", "e")]


def test_drafts_are_pending_until_the_first_is_judged() -> None:
    events = one_round(0, [("a", 0.9), ("b", 0.8)], own="c")
    stream = StreamHtml()
    for event in events[:3]:
        stream.add(event)
    assert Page(stream.value()["pending"]).kept == "ab"
    assert stream.done == ""
    stream.add(events[3])
    assert stream.value()["pending"] == ""


def test_drafts_behind_the_first_rejection_leave_no_trace() -> None:
    done = folded(one_round(0, [("a", 0.9)], ("b", 0.2), "c", gamma=4)).done
    assert "never" not in done


def test_a_stop_leaves_no_pending_block() -> None:
    stream = folded(one_round(0, [("a", 0.9), ("b", 0.8)], own="c")[:3])
    stream.add(SummaryFinished("", (), "cancelled", 0, 2, 1.0))
    assert stream.value()["pending"] == ""


def test_the_tooltip_names_p_q_overlap_u_and_the_round() -> None:
    event = TokenRejected(4, 1, 8, "x", 0.125, 0.5, 0.25, 0.75, 1.0)
    tip = token_tip(event)
    assert tip == "rejected · p 0.125 · q 0.500 · overlap 0.250 · u 0.750 · round 5"


def test_the_tooltip_of_a_bonus_token_leaves_out_what_it_has_not() -> None:
    assert token_tip(TokenBonus(0, 4, 9, "x", 0.6, None, None, None, 0.0)) == (
        "bonus · p 0.600 · round 1"
    )


def test_a_rejected_line_break_is_shown_and_breaks_no_line() -> None:
    fragment = token(TokenRejected(0, 0, 8, "\n", 0.1, 0.9, 0.2, None, 0.0))
    assert "\n" not in fragment
    assert "⏎" in fragment


def test_a_token_without_text_adds_nothing_to_the_stream() -> None:
    assert token(TokenAccepted(0, 0, 8, "", 0.1, 0.9, 0.2, None, 0.0)) == ""


FIGURES = ("alpha", "rate", "passes", "speed")


def test_every_ratio_is_a_dash_before_anything_was_judged() -> None:
    assert [tiles(None)[name] for name in FIGURES] == ["–"] * 4


def test_the_tiles_show_the_folds_figures() -> None:
    report = RunReport.of(whole_run())
    assert [tiles(report)[name] for name in FIGURES] == [
        f"{report.alpha:.3f}",
        f"{report.acceptance_rate:.0%}",
        f"{report.tokens_per_pass:.2f}",
        f"{report.speedup:.2f}",
    ]


def test_the_status_line_escapes_and_bounds_its_bar() -> None:
    line = status("<b>", "busy", 1.7)
    assert line["message"] == "&lt;b&gt;"
    assert line["percent"] == "100%"
    assert status("x")["percent"] == ""
