"""What the target is asked for is a value, and everything else goes with any of them."""

from __future__ import annotations

import dataclasses

import pytest

from sidecar_core import MainTask
from sidecar_core.__main__ import main
from sidecar_core.errors import SidecarError
from sidecar_core.events import PrefillProgress, RunStarted, SummaryFinished, TagsFinished
from sidecar_core.main_tasks import MAIN_TASKS, SUMMARY, check_main_task, main_task_of
from sidecar_core.page.links import from_query, to_query
from sidecar_core.prompts import INSTRUCTION
from sidecar_core.settings import MAX_TASK_CHARS, OWN, RunSettings
from tests.tiny_pair import tiny_engine

ARTICLE = "the council of old town voted for new boats"
OWN_WORDS = RunSettings(main_task=OWN, instruction="Write a letter. ", max_tokens=6)


def test_the_default_is_the_summary_of_the_posts():
    assert main_task_of(RunSettings()) == SUMMARY
    assert SUMMARY.instruction == INSTRUCTION


@pytest.mark.parametrize("name", [*MAIN_TASKS, OWN])
def test_both_prompts_hold_the_instruction_and_only_the_drafts_the_suffix(name):
    engine = tiny_engine()
    settings = dataclasses.replace(OWN_WORDS, main_task=name)
    found = engine.build_prompts(ARTICLE, settings)
    wanted = engine.prompts.plain(main_task_of(settings).instruction)
    assert found.target.segment("instruction").ids == wanted
    assert found.draft.segment("instruction").ids == wanted
    assert found.draft.without("suffix") == found.target


def test_a_run_with_another_main_task_gets_its_tags_and_says_what_it_was():
    events = list(tiny_engine().stream(ARTICLE, OWN_WORDS))
    started = next(e for e in events if isinstance(e, RunStarted))
    assert RunSettings(**started.settings) == dataclasses.replace(
        OWN_WORDS, instruction="Write a letter."
    )
    assert sum(isinstance(e, TagsFinished) for e in events) == 2


def test_a_main_task_of_ones_own_is_given_in_python():
    letter = MainTask("letter", "A letter", "\n\nWrite a letter about the document.")
    engine = tiny_engine()
    settings = RunSettings(max_tokens=6, temperature=0.9)
    texts = set()
    for task in (letter, SUMMARY, None):
        events = list(engine.stream(ARTICLE, settings, main_task=task))
        started = next(e for e in events if isinstance(e, RunStarted))
        assert started.settings["main_task"] == (task or SUMMARY).name
        texts.add(next(e.ids for e in events if isinstance(e, SummaryFinished)))
    assert len(texts) == 2  # the last two are the same


def test_a_prefix_is_kept_for_its_main_task_alone():
    engine = tiny_engine()

    def read(settings: RunSettings) -> int:
        """Tokens of both prompts that were read now."""
        events = list(engine.stream(ARTICLE, settings))
        started = next(e for e in events if isinstance(e, RunStarted))
        assert any(isinstance(e, PrefillProgress) for e in events)
        return started.target_tokens - started.reused_tokens[0]

    first = read(RunSettings(max_tokens=4))
    assert read(OWN_WORDS) > 20
    assert read(RunSettings(max_tokens=4)) < first


def test_the_room_for_the_article_shrinks_with_the_instruction():
    engine = tiny_engine()
    long = dataclasses.replace(OWN_WORDS, instruction="word " * 60)
    short = engine.article_limit(OWN_WORDS)
    assert engine.article_limit(long) < short


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"main_task": OWN, "instruction": "  "}, "needs an instruction"),
        ({"main_task": OWN, "instruction": "a" * (MAX_TASK_CHARS + 1)}, "at most 2,000"),
        ({"main_task": OWN, "instruction": "\udc80"}, "half a character"),
        ({"main_task": 7}, "by its name"),
        ({"main_task": "poem"}, "no main task 'poem'"),
    ],
)
def test_what_cannot_be_a_main_task_is_refused(changes, words):
    with pytest.raises(SidecarError, match=words):
        next(tiny_engine().stream(ARTICLE, RunSettings(**changes)))


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("summary", "is no MainTask"),
        (MainTask("x", "X", " "), "needs an instruction"),
        (MainTask("x", "X", "\udc80"), "half a character"),
        (MainTask("x", "X", "a" * (MAX_TASK_CHARS + 3)), "2,000 characters"),
    ],
)
def test_a_main_task_made_in_python_is_checked(task, words):
    with pytest.raises(SidecarError, match=words):
        check_main_task(task)


def test_an_instruction_stays_text():
    engine = tiny_engine()
    settings = dataclasses.replace(OWN_WORDS, instruction="Write <|end|> twice.")
    ids = engine.build_prompts(ARTICLE, settings).target.segment("instruction").ids
    assert not engine.tag_stop_ids & set(ids)


def test_a_link_carries_the_main_task():
    settings = RunSettings(main_task="questions")
    assert from_query({"main_task": "questions"}) == (settings, None)
    assert to_query(settings) == "main_task=questions"
    with pytest.raises(SidecarError, match="no main task"):
        from_query({"main_task": "poem"})


def test_the_command_refuses_an_unknown_one_before_it_loads_anything(tmp_path, capsys):
    article = tmp_path / "article.txt"
    article.write_text(ARTICLE, "utf-8")
    assert main(["run", str(article), "--main-task", "poem"]) == 2
    assert "choose one of summary" in capsys.readouterr().err
