"""The corpus leak rate: pooling over hand-made articles, and a run on tiny models."""

from __future__ import annotations

import csv
import dataclasses
import io
from itertools import cycle

import pytest

from sidecar_core.decoding.batch import Sample
from sidecar_core.experiments.corpus import Document, Skipped
from sidecar_core.experiments.leak.over_corpus import CorpusLeaks, corpus_leak_test, table_csv
from sidecar_core.experiments.leak.report import Forced, LeakSettings, Sampled
from sidecar_core.experiments.readings import Step
from tests.tiny_pair import tiny_engine

SETTINGS = LeakSettings(samples=2, watch="oslo", conditions=("attended", "masked"))

ARTICLES = {
    "one": ("The mayor of Oslo opened a bridge.", [("bridge", "oslo"), ("mayor",)]),
    "two": ("The mayor of Bergen opened a bridge.", [("bridge", "bergen"), ("bergen", "rain")]),
}
SUMMARY = "A mayor opened a bridge."


def filled(articles: int = 2) -> CorpusLeaks:
    """The two articles in turn, as many as are wanted."""
    leaks = CorpusLeaks(SETTINGS)
    for n, (key, (text, attended)) in zip(range(articles), cycle(ARTICLES.items()), strict=False):
        name = key if n < len(ARTICLES) else f"{key}-{n}"
        leaks.add(Forced(Document(name, text), SUMMARY, (1,)))
        for condition, lists in (("attended", attended), ("masked", [("bridge",), ("mayor",)])):
            for row, tags in enumerate(lists):
                leaks.add(Sampled(name, condition, Sample(row, (), "", tags)))
    return leaks


def test_tags_only_in_the_document_are_pooled_over_articles():
    result = filled().as_dict()
    attended, masked = (result["conditions"][name] for name in ("attended", "masked"))
    assert result["documents"] == 2
    assert (attended["tags"], attended["tags_only_in_document"]) == (7, 3)
    assert attended["tags_in_neither"] == 1
    assert attended["tag_rate"] == pytest.approx(3 / 7)
    assert (attended["samples"], attended["leaks"], attended["watched"]) == (4, 3, 1)
    assert (masked["tags"], masked["tag_rate"]) == (4, 0.0)


def test_two_articles_are_too_few_for_an_interval():
    result = filled().as_dict()
    assert result["conditions"]["attended"]["tag_ci95"] is None
    assert result["conditions"]["attended"]["ci95"] is None
    paired = result["differences"]["attended - masked"]
    assert paired["difference"] == pytest.approx(3 / 7)
    assert paired["ci95"] is None


def test_no_leak_in_any_article_is_an_upper_bound_by_articles():
    result = filled(articles=10).as_dict()
    masked = result["conditions"]["masked"]
    assert (masked["tags"], masked["tag_rate"]) == (20, 0.0)
    assert masked["tag_ci95"] == pytest.approx([0.0, 1 - 0.025 ** (1 / 10)])
    low, high = result["differences"]["attended - masked"]["ci95"]
    assert low < result["differences"]["attended - masked"]["difference"] < high


def test_an_article_without_tags_is_not_one_of_the_documents():
    leaks = filled(articles=3)
    wanted = leaks.as_dict()
    leaks.add(Forced(Document("silent", "Oslo."), SUMMARY, (1,)))
    for condition in SETTINGS.conditions:
        for row in range(2):
            leaks.add(Sampled("silent", condition, Sample(row, (), "", ())))
    result = leaks.as_dict()
    assert (result["documents"], result["without_tags"]) == (3, 1)
    for name, found in result["conditions"].items():
        assert found["documents"] == 3
        assert found["tag_ci95"] == wanted["conditions"][name]["tag_ci95"]


def test_an_article_that_was_left_in_the_middle_does_not_count():
    leaks = filled()
    leaks.add(Forced(Document("three", "Oslo."), SUMMARY, (1,)))
    leaks.add(Sampled("three", "attended", Sample(0, (), "", ("oslo",))))
    assert leaks.as_dict() == filled().as_dict()


def test_without_any_article_rates_are_none():
    result = CorpusLeaks(SETTINGS).as_dict()
    assert result["conditions"]["attended"]["tag_rate"] is None
    assert result["conditions"]["attended"]["tag_ci95"] is None
    assert result["differences"] == {}
    assert table_csv(result["per_document"]) == ""


def test_the_csv_holds_every_article_under_every_condition():
    rows = list(csv.DictReader(io.StringIO(table_csv(filled().table()))))
    assert [(r["document"], r["condition"]) for r in rows] == [
        ("one", "attended"), ("one", "masked"), ("two", "attended"), ("two", "masked"),
    ]  # fmt: skip
    first = rows[0]
    assert (first["tags"], first["in_summary"], first["only_in_document"]) == ("3", "2", "1")


@pytest.mark.slow
def test_a_corpus_runs_through_all_articles_and_passes_over_what_cannot_be_used():
    engine = tiny_engine()
    documents = [
        Document("long", "word " * 30_000),
        Document("a", "The council voted on Tuesday."),
        Document("b", "The old quarter gets boilers."),
    ]
    settings = dataclasses.replace(SETTINGS, samples=3)
    leaks = CorpusLeaks(settings)
    for event in corpus_leak_test(engine, documents, settings):
        leaks.add(event)
    result = leaks.as_dict()
    assert result["documents"] == 2
    assert [s.where for s in leaks.skipped] == ["long"]
    assert result["conditions"]["masked"]["samples"] == 6


@pytest.mark.slow
def test_stop_ends_a_corpus_at_once():
    documents = iter([Document(str(n), "The council voted on Tuesday.") for n in range(3)])
    seen: list[object] = []
    for event in corpus_leak_test(
        tiny_engine(), documents, SETTINGS, stop=lambda: any(isinstance(e, Forced) for e in seen)
    ):
        seen.append(event)
    assert sum(isinstance(e, Forced) for e in seen) == 1
    assert not any(isinstance(e, Skipped) for e in seen)
    assert isinstance(seen[-1], Step | Sampled)
    assert next(documents).id == "1"  # nobody asked for it
