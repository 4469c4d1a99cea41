"""Where a tag's words stand, by the stated rule."""

from __future__ import annotations

import pytest

from sidecar_core.grounding import MAX_PASSAGE, ground, is_in, passage, stems, words

SUMMARY = "Blue Bell recalled ice-cream products. Three patients died in a Kansas hospital."
DOCUMENT = (
    "Blue Bell recalled ice cream. The company's Broken Arrow, Oklahoma, plant was shut. "
    "Officials at the Centers for Disease Control were warned."
)


@pytest.mark.parametrize(
    "family",
    [
        ("recall", "recalls", "recalled", "recalling"),
        ("bakery", "bakeries"),
        ("plan", "plans", "planned", "planning"),
        ("illness", "illnesses"),
        ("bake", "baked", "baking"),
        ("box", "boxes"),
        ("study", "studies", "studied"),
    ],
)
def test_the_forms_of_a_word_share_a_stem(family: tuple[str, ...]) -> None:
    assert len({stems(word) for word in family}) == 1


@pytest.mark.parametrize(
    ("a", "b"),
    [("new", "news"), ("bus", "bust"), ("plan", "plant"), ("thin", "thing"), ("car", "care")],
)
def test_different_words_keep_different_stems(a: str, b: str) -> None:
    assert stems(a) != stems(b)


def test_words_ignore_case_accents_and_possessives() -> None:
    assert words("The Café’s owner's BRÛLÉ") == ["the", "cafe", "owner", "brule"]


@pytest.mark.parametrize(
    ("tag", "place"),
    [
        ("ice-cream", "summary"),
        ("product-recall", "summary"),
        ("brokenarrow", "document"),
        ("broken-arrow-plant", "document"),
        ("oklahoma-plants", "document"),
        ("salmonella", "neither"),
        ("broken-hospital", "neither"),
        ("of-the", "neither"),
        ("", "neither"),
    ],
)
def test_a_tag_stands_where_all_of_its_words_stand(tag: str, place: str) -> None:
    assert ground(tag, SUMMARY, DOCUMENT).place == place


def test_letters_run_together_must_be_whole_words() -> None:
    assert is_in("icecream", "They sold ice cream.")
    assert is_in("icecream", "They sold ice creams.")
    assert not is_in("rice", "Their ice was gone.")
    assert not is_in("arrow", "A narrow street.")


def test_the_summary_is_asked_before_the_document() -> None:
    assert ground("blue-bell", SUMMARY, DOCUMENT).passage.startswith("Blue Bell recalled ice-cream")


def test_the_passage_is_the_sentence_with_most_of_the_tag() -> None:
    assert passage("broken-arrow", DOCUMENT).startswith("The company's Broken Arrow")
    assert passage("brokenarrow", DOCUMENT).startswith("The company's Broken Arrow")


def test_a_long_passage_is_cut_around_the_word() -> None:
    text = "word " * 300 + "listeria " + "word " * 300
    found = passage("listeria", text)
    assert "listeria" in found
    assert len(found) <= MAX_PASSAGE + 2


def test_a_tag_in_another_script_is_found() -> None:
    assert ground("мороженое", "Вкусное мороженое", "").place == "summary"
