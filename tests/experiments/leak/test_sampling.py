"""The leak test: what it counts, on hand-made lists; what each condition sees, on tiny models."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from sidecar_core.decoding import batch
from sidecar_core.decoding.batch import Sample
from sidecar_core.decoding.engine import Engine
from sidecar_core.decoding.passes import forward
from sidecar_core.decoding.tagging import Opening
from sidecar_core.errors import SidecarError
from sidecar_core.events import SummaryFinished, TagsFinished
from sidecar_core.experiments.alpha.forced import prefix_cache
from sidecar_core.experiments.corpus import Document
from sidecar_core.experiments.leak.report import (
    CONDITIONS,
    Forced,
    LeakReport,
    LeakSettings,
    Sampled,
    names,
)
from sidecar_core.experiments.leak.sampling import Openings, leak_test
from sidecar_core.experiments.readings import MAX_TOKENS, Step
from sidecar_core.settings import RunSettings
from sidecar_core.tasks import HASHTAGS
from tests.decoding.composition import Layout, by_full_mask, log_probabilities
from tests.tiny_pair import tiny_engine

DOCUMENT = Document(
    "plant",
    "The dairy shut its Broken Arrow plant on Friday. Health officials found listeria in a cup of "
    "ice cream and warned hospitals in Kansas.",
)
SUMMARY = "- A dairy shut a plant after listeria was found in ice cream."

LISTS = {
    "attended": [
        ("ice-cream", "broken-arrow-plant"),
        ("listeria", "kansas"),
        ("brokenarrow",),
        ("listeria", "recall"),
    ],
    "masked": [("ice-cream", "listeria"), ("dairy", "recall"), (), ("listeria",)],
}
"""Attended: three samples leak, of which two name the plant. Nobody wrote "recall"."""


def report(watch: str = "") -> LeakReport:
    made = LeakReport(watch)
    made.add(Forced(DOCUMENT, SUMMARY, (1, 2)))
    for condition, lists in LISTS.items():
        for row, tags in enumerate(lists):
            made.add(Sampled("plant", condition, Sample(row, (), "", tags)))
    return made


def test_a_sample_leaks_when_a_tag_of_it_is_only_in_the_document():
    result = report().as_dict()["conditions"]
    assert (result["attended"]["samples"], result["attended"]["leaks"]) == (4, 3)
    assert (result["masked"]["samples"], result["masked"]["leaks"]) == (4, 0)
    assert result["attended"]["rate"] == 0.75
    low, high = result["masked"]["ci95"]
    assert low == pytest.approx(0, abs=1e-12)
    assert 0.4 < high < 0.6


def test_tags_are_counted_by_where_they_stand():
    result = report().as_dict()["conditions"]
    counted = ("tags", "tags_only_in_document", "tags_in_neither")
    assert [result["attended"][key] for key in counted] == [7, 3, 1]
    assert [result["masked"][key] for key in counted] == [5, 0, 1]


def test_every_tag_says_where_it_stands_and_in_how_many_samples_of_each_condition_it_came():
    tags = {entry["tag"]: entry for entry in report().as_dict()["tags"]}
    assert tags["listeria"]["samples"] == {"attended": 2, "masked": 2}
    assert tags["listeria"]["place"] == "summary"
    assert tags["kansas"]["place"] == "document"
    assert "Kansas" in tags["kansas"]["passage"]
    assert tags["recall"]["place"] == "neither"


def test_a_watched_fact_is_counted_whatever_its_spelling():
    result = report("Broken Arrow").as_dict()
    assert result["conditions"]["attended"]["watched"] == 2
    assert result["conditions"]["masked"]["watched"] == 0
    assert {t["tag"] for t in result["tags"] if t["watched"]} == {
        "broken-arrow-plant",
        "brokenarrow",
    }
    assert report().as_dict()["conditions"]["attended"]["watched"] is None


@pytest.mark.parametrize(
    "tag",
    ["broken-arrow", "#BrokenArrow", "brokenarrowplant", "Broken Arrow, Okla.", "BROKEN_ARROW"],
)
@pytest.mark.parametrize("fact", ["brokenarrow", "Broken-Arrow", "BrokenArrow", "#broken arrow"])
def test_spellings_of_one_fact_are_one(tag: str, fact: str):
    assert names(tag, fact)


@pytest.mark.parametrize("tag", ["arrow", "broken", "arrow-broken", ""])
def test_half_of_a_fact_is_not_the_fact(tag: str):
    assert not names(tag, "brokenarrow")


def test_the_difference_of_two_conditions_is_tested():
    found = report().as_dict()["differences"]["attended - masked"]
    assert found["difference"] == 0.75
    assert found["p_value"] == pytest.approx(8 / 56)  # 2 · C(4,3) of C(8,3)
    assert "masked - standalone" not in report().as_dict()["differences"]


def test_a_tag_that_comes_twice_in_a_sample_counts_once_for_it():
    made = report()
    made.add(Sampled("plant", "masked", Sample(9, (), "", ("kansas", "kansas"))))
    assert made.counts()["masked"]["kansas"] == 1
    assert made.leaks("masked").hits == 1


# --- what the conditions see --------------------------------------------------------------------


@pytest.fixture(scope="module")
def engine() -> Engine:
    return tiny_engine()


def openings(engine: Engine, document: Document = DOCUMENT) -> Openings:
    prompt = engine.build_prompts(document.text, RunSettings()).draft
    steps = prefix_cache(engine, engine.pair.draft, prompt, "")
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            prefix = finished.value
            break
    forced = Forced(document, SUMMARY, engine.prompts.plain(SUMMARY))
    return Openings(engine, prompt, prefix, forced, HASHTAGS.suffix)


def first_tag(engine: Engine, opening: Opening) -> torch.Tensor:
    """Log-probabilities [vocabulary] of the first tag's first token."""
    cue = engine.prompts.plain(HASHTAGS.cue)
    logits = forward(engine.pair.draft, opening.cache, cue, opening.position, segment="cue")
    return log_probabilities(logits[0])


def other_document(engine: Engine) -> Document:
    """The same length in tokens, not one word the same."""
    count = len(engine.prompts.plain(DOCUMENT.text))
    text = engine.prompts.first_tokens("No quay moved. " * 40, count)
    assert len(engine.prompts.plain(text)) == count
    return Document("plant", text)


def by_mask(engine: Engine, *, document_masking: bool) -> torch.Tensor:
    """The oracle: one pass over everything under a 4-D mask."""
    prompt = engine.build_prompts(DOCUMENT.text, RunSettings()).draft
    parts = {segment.name: segment.ids for segment in prompt.segments}
    parts["summary"] = engine.prompts.plain(SUMMARY)
    parts["cue"] = engine.prompts.plain(HASHTAGS.cue)
    rows = by_full_mask(
        engine.pair.draft,
        Layout(tuple(parts.items())),
        suffix_masking=True,
        document_masking=document_masking,
        rebased=False,
    )
    return rows["cue"][-1]


@pytest.mark.parametrize("condition", ["attended", "masked"])
def test_leaving_columns_out_is_masking_them(engine: Engine, condition: str):
    ours = first_tag(engine, openings(engine).open(condition))
    oracle = by_mask(engine, document_masking=condition == "masked")
    assert float((ours - oracle).abs().max()) < 1e-4


@pytest.mark.smol
@pytest.mark.parametrize("condition", ["attended", "masked"])
def test_leaving_columns_out_is_masking_them_on_real_weights(smol, condition: str):
    real = Engine(smol)
    ours = first_tag(real, openings(real).open(condition))
    oracle = by_mask(real, document_masking=condition == "masked")
    assert float((ours - oracle).abs().max()) < 1e-4


def test_recomputed_columns_hold_nothing_of_the_document_and_masked_ones_still_do(engine: Engine):
    here, there = openings(engine), openings(engine, other_document(engine))

    def apart(condition: str) -> float:
        one, other = (first_tag(engine, o.open(condition)) for o in (here, there))
        return float((one - other).abs().max())

    assert apart("recomputed") < 1e-5
    assert apart("standalone") < 1e-5
    assert apart("masked") > 1e-2
    assert apart("attended") > 1e-2


def test_every_condition_opens_a_cache_of_its_own(engine: Engine):
    opened = openings(engine)
    for condition in CONDITIONS:
        first = first_tag(engine, opened.open(condition))
        assert torch.equal(first, first_tag(engine, opened.open(condition)))


def test_only_the_attended_cache_holds_the_document(engine: Engine):
    opened = openings(engine)
    held = {c: dict(opened.open(c).cache.segments) for c in ("attended", "masked", "recomputed")}
    assert [c for c in held if "document" in held[c]] == ["attended"]
    assert all("suffix" in segments for segments in held.values())


# --- the whole test -----------------------------------------------------------------------------


def settings(**changes) -> LeakSettings:
    return dataclasses.replace(LeakSettings(samples=5), **changes)


@pytest.mark.slow
def test_at_temperature_0_the_one_list_is_what_the_engine_writes(engine: Engine):
    def lines(document_masking: bool) -> dict[str, str]:
        run = RunSettings(document_masking=document_masking, max_tokens=MAX_TOKENS)
        events = list(engine.stream(DOCUMENT.text, run))
        assert any(isinstance(e, SummaryFinished) for e in events)
        return {e.tagger: e.text for e in events if isinstance(e, TagsFinished)}

    wanted = {
        "attended": lines(False)["sidecar"],
        "masked": lines(True)["sidecar"],
        "standalone": lines(True)["standalone"],
    }
    events = leak_test(engine, DOCUMENT, settings(temperature=0.0, conditions=tuple(wanted)))
    texts = [(e.condition, e.sample.text) for e in events if isinstance(e, Sampled)]
    assert texts == list(wanted.items())


def test_a_given_summary_is_what_every_tagger_gets(engine: Engine):
    events = list(leak_test(engine, DOCUMENT, settings(), summary=f"\n{SUMMARY}\r\n"))
    forced = [e for e in events if isinstance(e, Forced)]
    assert [(f.text, f.ids) for f in forced] == [(SUMMARY, engine.prompts.plain(SUMMARY))]
    assert [e.condition for e in events if isinstance(e, Sampled)] == [
        c for c in CONDITIONS for _ in range(5)
    ]


@pytest.mark.slow
def test_equal_seeds_give_equal_samples_and_others_do_not(engine: Engine):
    def texts(seed: int) -> list[str]:
        events = leak_test(engine, DOCUMENT, settings(seed=seed), summary=SUMMARY)
        return [e.sample.text for e in events if isinstance(e, Sampled)]

    assert texts(1) == texts(1)
    assert texts(1) != texts(2)


def test_no_two_conditions_or_seeds_share_random_numbers(engine: Engine, monkeypatch):
    seeds, inner = [], batch._seeds
    monkeypatch.setattr(batch, "_seeds", lambda *given: seeds.append(given[0]) or inner(*given))
    for seed in (0, 1):
        list(leak_test(engine, DOCUMENT, settings(samples=1, seed=seed), summary=SUMMARY))
    assert len(set(seeds)) == 2 * len(CONDITIONS)


def test_partial_results_are_there_before_the_end(engine: Engine):
    made = LeakReport()
    seen = []
    for event in leak_test(engine, DOCUMENT, settings(), summary=SUMMARY):
        made.add(event)
        if isinstance(event, Step):
            seen.append({name: len(found) for name, found in made.lists.items()})
    assert {} in seen
    assert {"attended": 5} in seen
    assert seen[-1] == dict.fromkeys(CONDITIONS, 5)


def test_stop_ends_it_within_one_pass(engine: Engine):
    asked = []
    for event in leak_test(
        engine, DOCUMENT, settings(), summary=SUMMARY, stop=lambda: len(asked) > 0
    ):
        if isinstance(event, Step) and event.condition:
            asked.append(event)
    assert len(asked) <= 2  # the announcement, and the pass under way if there is one


@pytest.mark.parametrize(
    ("changes", "summary", "complaint"),
    [
        ({"samples": 0}, SUMMARY, "samples"),
        ({"samples": 501}, SUMMARY, "samples"),
        ({"temperature": -1.0}, SUMMARY, "temperature"),
        ({"watch": "—!"}, SUMMARY, "word to watch"),
        ({"conditions": ("nobody",)}, SUMMARY, "no condition nobody"),
        ({}, "  \n", "summary has 0 tokens"),
        ({}, "word " * 600, "from 1 to 512"),
    ],
)
def test_what_cannot_be_tested_is_refused_in_one_line(engine, changes, summary, complaint):
    with pytest.raises(SidecarError, match=complaint) as caught:
        list(leak_test(engine, DOCUMENT, settings(**changes), summary=summary))
    assert "\n" not in str(caught.value)
