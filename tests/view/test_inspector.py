"""What a token says to the inspector, and that it is text."""

from __future__ import annotations

import html
import json
import re

import pytest
import torch

from sidecar_core.decoding.speculative import _candidates
from sidecar_core.events import (
    Candidates,
    TokenAccepted,
    TokenBonus,
    TokenCorrected,
    TokenDrafted,
    TokenRejected,
)
from sidecar_core.recording import compact, read_recording, record, write_recording
from sidecar_core.settings import RunSettings
from sidecar_core.view.inspector import at_place, attributes, reason
from sidecar_core.view.recording_page import recording_page
from sidecar_core.view.render import StreamHtml
from tests.decoding.test_exact import article
from tests.runs import started
from tests.tiny_pair import tiny_engine

HOSTILE = '"><script>alert(1)</script>'
SETTINGS = RunSettings(gamma=4, temperature=0.8, max_tokens=16)


def events_of_a_run() -> list:
    return list(tiny_engine().stream(article(1), SETTINGS))


def test_the_candidates_are_the_likeliest_of_both_models():
    class Words:
        def preview(self, tokens):
            return [f"w{token}" for token in tokens]

    p = torch.tensor([0.1, 0.5, 0.0, 0.3, 0.1])
    q = torch.tensor([0.6, 0.1, 0.3, 0.0, 0.0])
    found = _candidates(p, q, 2, Words())
    assert [words for words, _, _ in found] == ["w1", "w3", "w0", "w2"]
    for words, a, b in found:
        assert (a, b) == (float(p[int(words[1])]), float(q[int(words[1])]))
    shared = sum(min(a, b) for _, a, b in found)
    assert shared <= float(torch.minimum(p, q).sum()) + 1e-6


def test_every_judged_token_of_a_run_has_candidates_whose_shared_parts_fit_its_overlap():
    candidates, judged = None, 0
    for event in events_of_a_run():
        if isinstance(event, Candidates):
            candidates = event
            assert [p for _, p, _ in event.tokens[:5]] == sorted(
                (p for _, p, _ in event.tokens[:5]), reverse=True
            )
        if isinstance(event, TokenAccepted | TokenRejected):
            found = at_place(event, candidates)
            assert found is not None
            shared = sum(min(p, q) for _, p, q in found.tokens)
            assert 0 < shared <= event.overlap + 1e-5
            judged += 1
        if isinstance(event, TokenBonus):
            assert at_place(event, candidates) is None
    assert judged > 4


def test_candidates_change_nothing_of_a_run(monkeypatch):
    def without(events):
        return [
            (type(e).__name__, getattr(e, "id", None), getattr(e, "u", None))
            for e in events
            if not isinstance(e, Candidates)
        ]

    wanted = without(events_of_a_run())
    monkeypatch.setattr("sidecar_core.decoding.run.CANDIDATES", 0)
    events = events_of_a_run()
    assert not any(isinstance(e, Candidates) for e in events)
    assert without(events) == wanted


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (TokenAccepted(0, 0, 1, "a", 0.5, 0.25, 0.5, 0.9, 0.0), "is at most min(1, p ∕ q) = 1.000"),
        (TokenAccepted(0, 0, 1, "a", 0.5, 0.25, 0.5, None, 0.0), "likeliest"),
        (TokenRejected(0, 0, 1, "a", 0.1, 0.4, 0.5, 0.9, 0.0), "is above min(1, p ∕ q) = 0.250"),
        (TokenRejected(0, 0, 1, "a", 0.1, 0.4, 0.5, None, 0.0), "not the target’s likeliest"),
        (TokenCorrected(0, 0, 1, "a", 0.1, 0.4, 0.5, None, 0.0), "max(0, p − q)"),
        (TokenBonus(0, 4, 1, "a", 0.1, None, None, None, 0.0), "every draft of this round"),
    ],
)  # fmt: skip
def test_the_reason_is_said_in_words(event, words):
    assert words in reason(event)


def test_a_token_that_is_not_judged_says_nothing():
    assert attributes(TokenDrafted(0, 0, 1, "a", None, 0.5, None, None, 0.0), None) == ""


def test_what_a_model_wrote_stays_text_in_the_attributes():
    fold = StreamHtml()
    fold.add(Candidates(0, 0, ((HOSTILE, 0.5, 0.25),), 0.0))
    fold.add(TokenAccepted(0, 0, 1, "a", 0.5, 0.25, 0.5, 0.1, 0.0))
    assert "<script" not in fold.done
    (value,) = re.findall(r'data-likeliest="([^"]*)"', fold.done)
    assert json.loads(html.unescape(value)) == [[HOSTILE, 0.5, 0.25]]


def test_a_recording_keeps_them_and_grows_by_less_than_half_a_kilobyte_a_token():
    whole = compact(record(events_of_a_run()))
    text = write_recording(whole)
    again = read_recording(text)
    assert again.events == whole.events
    kept = [e for e in whole.events if isinstance(e, Candidates)]
    lines = [line for line in text.splitlines() if '"Candidates"' in line]
    assert len(lines) == len(kept) > 4
    assert max(map(len, lines)) < 512
    assert recording_page(again).count("data-likeliest") >= len(kept)


def test_an_older_recording_has_none_and_its_page_says_so():
    events = [e for e in events_of_a_run() if not isinstance(e, Candidates)]
    page = recording_page(compact(record(events)))
    assert "data-likeliest" not in page.split("<body", 1)[1].split("<script", 1)[0]
    assert "has no candidates" in page


def test_candidates_that_no_run_could_have_are_refused():
    from sidecar_core.errors import SidecarError
    from sidecar_core.events import RoundStarted, to_json

    begin = [started(), RoundStarted(0, 4, 0.1)]
    for wrong in (
        Candidates(1, 0, (), 0.2),
        Candidates(0, 0, (("a", 1.5, 0.1),), 0.2),
        Candidates(0, 0, (("a", 0.1, 0.1),) * 17, 0.2),
    ):
        with pytest.raises(SidecarError, match="Line 3"):
            read_recording("\n".join(map(to_json, [*begin, wrong])))
