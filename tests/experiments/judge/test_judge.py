"""The judge: planted cases with a scripted judge, and what a model judge really computes."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from sidecar_core.decoding.engine import Engine
from sidecar_core.errors import SidecarError
from sidecar_core.experiments.corpus import Document
from sidecar_core.experiments.judge.judge import (
    ANSWER_CUE,
    ANSWERS,
    QUESTION,
    REASON_CUE,
    ModelJudge,
    Verdict,
    compare,
    outcome,
)
from sidecar_core.experiments.judge.over_corpus import (
    Comparison,
    Comparisons,
    JudgeReport,
    comparison_key,
    judge_corpus,
)
from sidecar_core.experiments.judge.rules import overlap, rules_of
from sidecar_core.grounding import is_in
from sidecar_core.main_tasks import PARAGRAPH
from sidecar_core.settings import RunSettings
from sidecar_core.tasks import HASHTAGS
from tests.tiny_pair import tiny_engine
from tests.toy_tokenizers import DROPS_SYSTEM, toy_tokenizer

SUMMARY = "- The harbour council closes a fish market.\n- A flood wall takes its place."
GOOD = ("flood-wall", "fish-market")
INVENTED = ("flood-wall", "fish-market", "lisbon")


class Scripted:
    """Prefers the list with fewer tags that the summary does not hold; remembers what it saw."""

    name = key = "scripted"

    def __init__(self) -> None:
        self.asked: list[tuple[Sequence[str], Sequence[str]]] = []

    def compare(self, summary: str, first: Sequence[str], second: Sequence[str]) -> Verdict:
        self.asked.append((first, second))
        one, other = (sum(not is_in(t, summary) for t in tags) for tags in (first, second))
        answer = "tie" if one == other else "first" if one < other else "second"
        return Verdict(answer, f"{one} to {other}")


class AlwaysFirst(Scripted):
    """A judge that never reads the lists."""

    def compare(self, summary: str, first: Sequence[str], second: Sequence[str]) -> Verdict:
        self.asked.append((first, second))
        return Verdict("first")


def test_a_list_with_an_invented_name_loses_in_both_orders():
    found, verdicts = compare(Scripted(), SUMMARY, GOOD, INVENTED)
    assert (found, [v.answer for v in verdicts]) == ("sidecar", ["first", "second"])
    found, verdicts = compare(Scripted(), SUMMARY, INVENTED, GOOD)
    assert (found, [v.answer for v in verdicts]) == ("standalone", ["second", "first"])


def test_identical_lists_tie_without_a_question():
    judge = Scripted()
    assert compare(judge, SUMMARY, GOOD, GOOD) == ("tie", ())
    assert judge.asked == []


def test_a_judge_who_always_takes_the_first_list_decides_nothing():
    judge = AlwaysFirst()
    assert compare(judge, SUMMARY, GOOD, INVENTED)[0] == "tie"
    assert judge.asked == [(GOOD, INVENTED), (INVENTED, GOOD)]


def test_only_a_list_that_wins_in_both_orders_wins():
    outcomes = {
        answers: outcome(*map(Verdict, answers))
        for answers in itertools.product(["first", "second", "tie"], repeat=2)
    }
    assert outcomes.pop(("first", "second")) == "sidecar"
    assert outcomes.pop(("second", "first")) == "standalone"
    assert set(outcomes.values()) == {"tie"}


# --- a model as judge ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def engine() -> Engine:
    return tiny_engine()


def model_judge(engine: Engine, **options) -> ModelJudge:
    return ModelJudge(engine.pair.target, engine.pair.tokenizer, **options)


def by_full_pass(engine: Engine, first: str, second: str, answer: str) -> float:
    """Log-probability of an answer by one pass over question and answer, without a cache."""
    question = QUESTION.format(summary=SUMMARY, first=first, second=second)
    prompt = [*engine.prompts.text_only(question).ids, *engine.prompts.plain(ANSWER_CUE)]
    tokens = engine.prompts.plain(answer)
    logits = engine.pair.target.network(input_ids=torch.tensor([[*prompt, *tokens]])).logits[0]
    rows = logits.log_softmax(-1)[len(prompt) - 1 : -1]
    return sum(float(row[token]) for row, token in zip(rows, tokens, strict=True))


def test_the_verdict_is_the_most_probable_of_the_three_answers(engine: Engine):
    verdict = model_judge(engine).compare(SUMMARY, GOOD, INVENTED)
    first, second = "#flood-wall #fish-market", "#flood-wall #fish-market #lisbon"
    for name, text in ANSWERS.items():
        ours = verdict.log_probabilities[text.strip()]
        assert ours == pytest.approx(by_full_pass(engine, first, second, text), abs=1e-4)
        assert ours <= verdict.log_probabilities[ANSWERS[verdict.answer].strip()], name
    assert len(engine.prompts.plain(ANSWERS["tie"])) > 1  # several tokens in this vocabulary


def test_a_verdict_does_not_depend_on_what_was_asked_before(engine: Engine):
    used, other_summary = model_judge(engine), "- Something else."
    used.compare(other_summary, GOOD, ())
    used.compare(SUMMARY, INVENTED, GOOD)
    again = used.compare(SUMMARY, GOOD, INVENTED)
    assert again == used.compare(SUMMARY, GOOD, INVENTED)
    assert again == model_judge(engine).compare(SUMMARY, GOOD, INVENTED)


def test_reasons_are_one_line_and_can_be_left_out(engine: Engine):
    with_reason = model_judge(engine).compare(SUMMARY, GOOD, INVENTED)
    without = model_judge(engine, reasons=False).compare(SUMMARY, GOOD, INVENTED)
    assert with_reason.reason
    assert "\n" not in with_reason.reason
    assert without == dataclasses.replace(with_reason, reason="")


def test_a_question_longer_than_the_judge_can_read_is_refused(engine: Engine):
    with pytest.raises(SidecarError, match="has room for 4,096 tokens"):
        model_judge(engine).compare("word " * 3_000, GOOD, INVENTED)


# --- a whole corpus -----------------------------------------------------------------------------

DOCUMENTS = [
    Document("a", "The council voted on Tuesday to replace the boilers."),
    Document("b", "The old quarter gets a flood wall."),
    Document("c", "Keep each bullet under 18 words."),
]
SETTINGS = RunSettings(max_tokens=12, gamma=4, temperature=1.0)
"""Above temperature 0, so that a random model's lists differ and there is something to ask."""


def judged(engine: Engine, judge: Scripted, path: Path | None, **changes) -> JudgeReport:
    report = JudgeReport()
    settings = dataclasses.replace(SETTINGS, **changes)
    for event in judge_corpus(engine, judge, DOCUMENTS, settings, kept=Comparisons(path)):
        report.add(event)
    return report


def test_every_article_is_compared_and_every_verdict_kept_with_its_reason(engine, tmp_path):
    path = tmp_path / "verdicts.jsonl"
    judge = Scripted()
    result = judged(engine, judge, path).as_dict()
    assert result["comparisons"] == 3
    assert len(judge.asked) == 2 * (3 - result["identical_lists"]) > 0
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["id"] for line in lines] == ["a", "b", "c"]
    reasons = [verdict["reason"] for line in lines for verdict in line["verdicts"]]
    assert reasons
    assert all(" to " in reason for reason in reasons)


def test_a_second_run_asks_nothing_and_says_the_same(engine, tmp_path):
    path = tmp_path / "verdicts.jsonl"
    first = judged(engine, Scripted(), path).as_dict()
    judge, size = Scripted(), path.stat().st_size
    assert judged(engine, judge, path).as_dict() == first
    assert judge.asked == []
    assert path.stat().st_size == size


def test_a_run_that_was_killed_in_the_middle_of_a_line_goes_on_from_there(engine, tmp_path):
    path = tmp_path / "verdicts.jsonl"
    first = judged(engine, Scripted(), path).as_dict()
    path.write_bytes(path.read_bytes()[:-40])
    assert len(Comparisons(path).load()) == 2
    assert judged(engine, Scripted(), path).as_dict() == first
    assert len(Comparisons(path).load()) == 3


@pytest.mark.slow
def test_other_settings_or_another_judge_are_another_comparison(engine, tmp_path):
    path = tmp_path / "verdicts.jsonl"
    judged(engine, Scripted(), path)
    judged(engine, Scripted(), path, seed=1)
    other = Scripted()
    other.key = "another"
    judged(engine, other, path)
    assert len(Comparisons(path).load()) == 9


def reworded(monkeypatch, name: str, value: object) -> None:
    monkeypatch.setattr(f"sidecar_core.experiments.judge.judge.{name}", value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("QUESTION", QUESTION.replace("better", "shorter")),
        ("ANSWER_CUE", "The better one:"),
        ("REASON_CUE", "\nBecause"),
        ("ANSWERS", {"first": " one", "second": " two", "tie": " tie"}),
        ("REASON_TOKENS", 7),
    ],
)
def test_a_judge_that_is_asked_in_other_words_has_another_key(engine, monkeypatch, name, value):
    model, tokenizer = engine.pair.target, engine.pair.tokenizer
    before = ModelJudge(model, tokenizer).key
    assert ModelJudge(model, tokenizer).key == before
    reworded(monkeypatch, name, value)
    assert ModelJudge(model, tokenizer).key != before


def test_a_judge_with_another_chat_template_or_without_reasons_has_another_key(engine):
    model, tokenizer = engine.pair.target, engine.pair.tokenizer
    keys = {
        ModelJudge(model, tokenizer).key,
        ModelJudge(model, tokenizer, reasons=False).key,
        ModelJudge(model, toy_tokenizer(DROPS_SYSTEM)).key,
        ModelJudge(dataclasses.replace(model, eos_ids=frozenset({1})), tokenizer).key,
    }
    assert len(keys) == 4


def test_a_question_moved_over_the_border_to_the_answer_is_another_key(engine, monkeypatch):
    model, tokenizer = engine.pair.target, engine.pair.tokenizer
    before = ModelJudge(model, tokenizer).key
    reworded(monkeypatch, "ANSWER_CUE", ANSWER_CUE + REASON_CUE)
    reworded(monkeypatch, "REASON_CUE", "")
    assert ModelJudge(model, tokenizer).key != before


@pytest.mark.parametrize(
    "changed",
    [
        (
            "sidecar_core.main_tasks.MAIN_TASKS",
            {"summary": PARAGRAPH},
        ),
        ("sidecar_core.prompts.SUMMARY_OPENING", "The summary:\n"),
    ],
)
def test_other_words_of_the_prompts_are_another_comparison(engine, monkeypatch, changed):
    document = Document("one", "The council voted on Tuesday.")
    before = comparison_key(engine, Scripted(), document, SETTINGS)
    assert comparison_key(engine, Scripted(), document, SETTINGS) == before
    monkeypatch.setattr(*changed)
    assert comparison_key(engine, Scripted(), document, SETTINGS) != before


@pytest.mark.parametrize("change", [{"suffix": " Tag it."}, {"cue": "\n["}, {"max_tokens": 9}])
def test_another_wording_of_a_task_is_another_comparison(engine, monkeypatch, change):
    document = Document("one", "The council voted on Tuesday.")
    before = comparison_key(engine, Scripted(), document, SETTINGS)
    task = dataclasses.replace(HASHTAGS, **change)
    monkeypatch.setattr("sidecar_core.tasks.TASKS", {"hashtags": task})
    assert comparison_key(engine, Scripted(), document, SETTINGS) != before


def test_a_file_that_cannot_be_used_ends_the_run_with_one_clear_line(engine, tmp_path):
    with pytest.raises(SidecarError, match="Cannot read"):
        judged(engine, Scripted(), tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(SidecarError, match="Cannot write"):
        judged(engine, Scripted(), tmp_path / "file" / "verdicts.jsonl")


def test_articles_that_cannot_be_used_are_passed_over(engine):
    report = JudgeReport()
    for event in judge_corpus(engine, Scripted(), [Document("long", "word " * 30_000)], SETTINGS):
        report.add(event)
    assert [s.where for s in report.skipped] == ["long"]
    assert report.as_dict()["rules"] == {"sidecar": {}, "standalone": {}}
    assert report.as_dict()["p_value"] == 1.0


# --- counting -----------------------------------------------------------------------------------


def made(answers: tuple[str, str] | None, number: int = 0) -> Comparison:
    verdicts = tuple(map(Verdict, answers)) if answers else ()
    found = outcome(*verdicts) if verdicts else "tie"
    rules = {name: rules_of(GOOD, SUMMARY, SUMMARY) for name in ("sidecar", "standalone")}
    return Comparison(str(number), "a", SUMMARY, GOOD, GOOD, found, verdicts, rules, 1.0)


def test_the_published_split_is_no_difference():
    report = JudgeReport(
        [made(("first", "second"))] * 9 + [made(("second", "first"))] * 5 + [made(None)] * 86
    )
    result = report.as_dict()
    assert [result[k] for k in ("comparisons", "ties", "sidecar_wins", "standalone_wins")] == [
        100, 86, 9, 5,
    ]  # fmt: skip
    assert result["p_value"] == pytest.approx(0.424, abs=5e-4)
    assert result["identical_lists"] == 86


def test_the_position_bias_is_how_often_the_first_place_won():
    report = JudgeReport(
        [made(("first", "first"))] * 6 + [made(("first", "second")), made(("tie", "tie"))]
    )
    bias = report.as_dict()["position_bias"]
    assert (bias["first"], bias["second"], bias["tie"]) == (13, 1, 2)
    assert bias["p_value"] == pytest.approx(2 * (1 + 14) / 2**14)
    assert bias["agreed"] == 2 / 8


DOCUMENT = SUMMARY + " Stall owners move to Tern Street."


def test_rules_count_what_needs_no_model():
    tags = ("flood-wall", "flood-walls", "tern-street", "lisbon", "a-wall-in-the-place-of-a-market")
    assert rules_of(tags, SUMMARY, DOCUMENT) == {
        "count": 5,
        "count_as_asked": True,
        "short": 4,
        "duplicates": 1,
        "in_summary": 3,
        "only_in_document": 1,
        "in_neither": 1,
    }
    assert rules_of((), SUMMARY, DOCUMENT)["count_as_asked"] is False


def test_lists_overlap_by_meaning_not_by_spelling():
    assert overlap(("flood-wall", "market"), ("flood-walls", "fish")) == pytest.approx(1 / 3)
    assert overlap(GOOD, GOOD) == 1.0
    assert overlap((), ()) is None
