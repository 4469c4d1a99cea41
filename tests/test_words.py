"""Words in any script, and the one form in which they are compared."""

from __future__ import annotations

import pytest

from sidecar_core.language.words import fold, sentences, tokens


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Café’s owner's BRÛLÉ", ["The", "Café", "s", "owner", "s", "BRÛLÉ"]),
        ("the U.S. and the U.N.'s", ["the", "US", "and", "the", "UN", "s"]),
        ("l'eau d’Oslo", ["l", "eau", "d", "Oslo"]),
        ("ice-cream, sea_level", ["ice", "cream", "sea", "level"]),
        ("👩‍👩‍👧 fire🔥truck ☕️ 🇳🇴", ["fire", "truck"]),
        ("नई रेल सेवा", ["नई", "रेल", "सेवा"]),
        ("用电动渡轮取代柴油渡轮。", ["用", "电", "动", "渡轮", "取代", "柴油", "渡轮"]),
        ("東京都", ["東京", "都"]),
        ("สภาท่าเรือ", ["สภา", "ท่าเรือ"]),
        ("a\ud800b", ["a", "b"]),
        ("", []),
    ],
)
def test_words_of_any_script(text: str, words: list[str]) -> None:
    assert [token.text for token in tokens(text)] == words


def test_what_hangs_on_behind_an_apostrophe_is_an_ending() -> None:
    marked = {t.text: t.ending for t in tokens("İstanbul'da the town’s l'eau O'Neill")}
    assert [word for word, ending in marked.items() if ending] == ["da", "s"]


def test_capitals_are_an_acronym_but_not_in_a_line_of_capitals() -> None:
    found = tokens("COUNCIL TELLS US TO PAY\nThe US paid, and EU paid. I did too.")
    assert [token.text for token in found if token.acronym] == ["US", "EU"]


@pytest.mark.parametrize(
    "forms",
    [
        ("İstanbul", "istanbul", "ISTANBUL", "ıstanbul", "i̇stanbul"),
        ("Café", "cafe", "CAFE\u0301"),
        ("Straße", "STRASSE"),
        ("Łódź", "lodz"),
        ("ещё", "еще"),
        ("مُحَمَّد", "محمد"),
        ("ναύτης", "ναυτησ"),
        ("ＡＢＣ", "abc"),
    ],
)
def test_case_and_accents_are_folded(forms: tuple[str, ...]) -> None:
    assert len({fold(form) for form in forms}) == 1


@pytest.mark.parametrize(("a", "b"), [("राम", "रम"), ("मेरी", "मर"), ("が", "か"), ("й", "и")])
def test_marks_that_make_another_letter_stay(a: str, b: str) -> None:
    assert fold(a) != fold(b)


def test_sentences_end_in_any_script() -> None:
    assert sentences("One. Two!\nThree") == ["One.", "Two!", "Three"]
    assert sentences("港口决定。市长表示。") == ["港口决定。", "市长表示。"]
    assert sentences("रेल शुरू हुई। राहत मिलेगी।") == ["रेल शुरू हुई।", "राहत मिलेगी।"]
    assert sentences(" \n") == []
