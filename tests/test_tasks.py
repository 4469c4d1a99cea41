from __future__ import annotations

import pytest

from sidecar_core.errors import SidecarError
from sidecar_core.tasks import (
    HASHTAGS,
    TASKS,
    free_task,
    get_task,
    parse_category,
    parse_keywords,
    parse_line,
    parse_tags,
)


@pytest.mark.parametrize(
    ("raw", "tags"),
    [
        # behind the cue, which opens the bracket and the first quotation mark
        ('ai", "climate-change", "sea level"]', ("ai", "climate-change", "sea-level")),
        ('#AI", "#ClimateChange", "AISafetyRules"]', ("ai", "climate-change", "ai-safety-rules")),
        ('ai", #seaLevel, wind]', ("ai", "sea-level", "wind")),
        ("ai, sea level, wind]", ("ai", "sea-level", "wind")),
        ("'ai', 'wind']", ("ai", "wind")),
        # other shapes
        ('["Ai", "Wind"]', ("ai", "wind")),
        ('```json\n["ai", "wind"]\n```', ("ai", "wind")),
        ('Here they are: ["ai", "wind"] Enjoy!', ("ai", "wind")),
        ("#ai #ClimateChange #wind", ("ai", "climate-change", "wind")),
        ("Tags: #ai, #wind.", ("ai", "wind")),
        ("ai, climate change, wind", ("ai", "climate-change", "wind")),
        ("1. Ai\n2. Wind power\n3. Sea", ("ai", "wind-power", "sea")),
        ("- #Ai\n- #WindPower\n", ("ai", "wind-power")),
        ("天気、東京", ("天気", "東京")),
        # the cue opened the first tag, and the "#" stands in the cue
        ("climate #energy #policy", ("climate", "energy", "policy")),
        ("climate\n#energy\n#policy", ("climate", "energy", "policy")),
        ("sea level #energy ", ("sea-level", "energy")),
        ("#ai#wind#sea", ("ai", "wind", "sea")),
        # signs that hashtags cannot hold
        ('C++", "C#", "Rust"]', ("cpp", "csharp", "rust")),
        ("C++, C#, Rust]", ("cpp", "csharp", "rust")),
        ("#C++ #C# #Rust", ("cpp", "csharp", "rust")),
        ("1,000 jobs, 1.5C limit, wind]", ("1000-jobs", "1_5c-limit", "wind")),
        ("R&amp;D, Lunt &amp;amp; Sons, caf&#233;]", ("r-d", "lunt-sons", "café")),
        ('ai", "&quot;wind&quot;"]', ("ai", "wind")),
    ],
)
def test_lists_of_every_shape_become_tags(raw: str, tags: tuple[str, ...]) -> None:
    assert parse_tags(raw) == tags


@pytest.mark.parametrize(
    ("raw", "tags"),
    [
        ('ai", "wind"\nThese tags name the topics.', ("ai", "wind")),
        ('ai", "wind"\n\nNote: the summary is short', ("ai", "wind")),
        ("ai, wind\n\nThese hashtags capture the topics", ("ai", "wind")),
        ("ai, wind. These hashtags capture the topics", ("ai", "wind")),
        ("#ai #wind These tags describe it", ("ai", "wind")),
        ("#ai #wind\nThese tags describe it", ("ai", "wind")),
        ("- Ai\n- Wind\n\nThese are the tags", ("ai", "wind")),
        ("1. Ai\n2. Wind\nThese are the tags", ("ai", "wind")),
        ("Ai\nWind\n\nThese are the tags", ("ai", "wind")),
        # these are lists that go on
        ('ai",\n "wind",\n "sea', ("ai", "wind")),
        ("ai,\nwind,\nsea", ("ai", "wind", "sea")),
        ("Ai\nWind\nSea", ("ai", "wind", "sea")),
        ("St. Louis fire, U.S. Economy, wind", ("st-louis-fire", "us-economy", "wind")),
    ],
)
def test_prose_behind_an_unclosed_list_is_no_tag(raw: str, tags: tuple[str, ...]) -> None:
    assert parse_tags(raw) == tags


@pytest.mark.parametrize(
    ("raw", "tags"),
    [
        ('ai", "wi', ("ai",)),
        ('ai", "wind", "', ("ai", "wind")),
        ('ai", "wind",', ("ai", "wind")),
        ('ai", "wind"', ("ai", "wind")),
        ("ai", ("ai",)),
    ],
)
def test_a_tag_with_an_open_quotation_mark_is_unfinished_and_left_out(
    raw: str, tags: tuple[str, ...]
) -> None:
    assert parse_tags(raw) == tags


@pytest.mark.parametrize(
    ("item", "tag"),
    [
        ("#Climate Change", "climate-change"),
        ("U.S. economy!", "us-economy"),
        ("the town’s council", "the-towns-council"),
        ("R&D", "r-d"),
        ("CO₂", "co₂"),
        ("Café au lait", "café-au-lait"),
        ("cafe\u0301", "café"),
        ("हिन्दी", "हिन्दी"),
        ("مرحبا بالعالم", "مرحبا-بالعالم"),
        ("ÉnergieÉolienne", "énergie-éolienne"),
        ("covid19", "covid19"),
        ("--wind--", "wind"),
        ("☕ coffee 👩‍👩‍👧", "coffee"),
        (r"caf\u00e9", "café"),
        ("a\ud800b", "a-b"),
        ("İstanbul", "istanbul"),
        ("☕\ufe0f coffee", "coffee"),
        ("1.5C limit", "1_5c-limit"),
        ("$3.5 billion", "3_5-billion"),
        ("1,000 jobs", "1000-jobs"),
        ("1.000.000 Euro", "1000000-euro"),
        ("Python 3.12", "python-3_12"),
        ("5 % growth", "5-percent-growth"),
        ("-5 degrees", "minus-5-degrees"),
        ("sea_level", "sea-level"),
        ("Disney+", "disneyplus"),
        ("R&amp;D", "r-d"),
        ("NewYorkNewJersey", "new-york-new-jersey"),
        ("Bora Bora", "bora-bora"),
    ],
)
def test_tags_are_lower_case_words_of_any_script_joined_by_hyphens(item: str, tag: str) -> None:
    assert parse_tags(f'["{item}"]') == (tag,)


@pytest.mark.parametrize(
    "raw",
    [
        "",
        " ",
        "]",
        "#",
        '"',
        "[",
        "\\",
        '", "',
        "👩‍👩‍👧",
        "…",
        "A long sentence that is no tag at all",
        "#1000000",
        "1,000",
        "2026",
        "#000-jobs",
        "HeatPumpHeatPumpHeatPump",
        "car-car-car",
        "热泵热泵热泵",
    ],
)
def test_nothing_usable_gives_no_tags(raw: str) -> None:
    assert parse_tags(raw) == ()


def test_tags_are_distinct_and_at_most_five() -> None:
    assert parse_tags('car", "Car", "#car"]') == ("car",)
    assert parse_tags('a", "b", "c", "a", "d", "e", "f"]') == ("a", "b", "c", "d", "e")


@pytest.mark.parametrize(
    "raw",
    [
        'ai", "wind"]',
        "]",
        'a", "b", "c", "d", "e"',
        "#a #b #c #d #e ",
        'car", "Car"',
        "car, car,",
        "#car #car ",
        'heat", "HeatPumpHeatPump",',
    ],
)
def test_tagging_ends_at_the_bracket_the_fifth_tag_or_the_first_repeat(raw: str) -> None:
    assert HASHTAGS.is_done(raw)


@pytest.mark.parametrize(
    "raw",
    [
        "",
        'ai", "wind"',
        'a", "b", "c", "d", "e',  # the fifth is not complete
        "#a #b #c #d #e",
        'car", "car',  # may become "carpet"
        "#car #car",
    ],
)
def test_tagging_goes_on_until_then(raw: str) -> None:
    assert not HASHTAGS.is_done(raw)


def test_a_loop_ends_as_soon_as_it_repeats_and_leaves_one_tag() -> None:
    raw = ""
    for piece in ["car", '",', ' "', "car", '",', ' "', "car"] * 3:
        raw += piece
        if HASHTAGS.is_done(raw):
            break
    assert raw == 'car", "car",'
    assert HASHTAGS.parse(raw) == ("car",)


def test_a_tag_that_repeats_itself_is_left_out() -> None:
    assert parse_tags('HeatPump", "#HeatPumpHeatPump", "face-to-face"') == (
        "heat-pump",
        "face-to-face",
    )


@pytest.mark.parametrize(
    ("raw", "keywords", "done"),
    [
        (" Wind, sea level, Oslo\n", ("Wind", "sea level", "Oslo"), True),
        (" Wind, sea", ("Wind", "sea"), False),
        ("\n- Wind\n- **Sea level**\n", ("Wind", "Sea level"), False),
        ("\n1. Wind\n2. Sea level\n\nThat is", ("Wind", "Sea level"), True),
        (" Wind, sea, wind,", ("Wind", "sea"), True),
        (" 1,000 jobs, C#, 5 %,", ("1,000 jobs", "C#", "5 %"), False),
        (" R&amp;D, sea", ("R&D", "sea"), False),
        ('["Wind", "sea"]', ("Wind", "sea"), True),
    ],
)
def test_keywords_keep_their_words_and_end_with_their_list(
    raw: str, keywords: tuple[str, ...], done: bool
) -> None:
    assert parse_keywords(raw) == keywords
    assert TASKS["keywords"].is_done(raw) is done


def test_a_headline_is_one_line_without_quotation_marks() -> None:
    headline = TASKS["headline"]
    assert not headline.is_done("\n Town heats")
    assert headline.is_done("\n Town heats homes\n")
    assert parse_line('\n **"Town heats homes"**\nMore') == ("Town heats homes",)
    assert parse_line("\n\n") == ()


def test_a_category_is_what_stands_before_any_punctuation() -> None:
    category = TASKS["category"]
    assert parse_category(" Business, or politics") == ("business",)
    assert parse_category("\nSport\n") == ("sport",)
    assert parse_category(" ,") == ()
    assert not category.is_done(" Busi")
    assert not category.is_done("\n")
    assert category.is_done(" Business\n")


def test_a_translation_keeps_its_lines_and_ends_at_an_empty_one() -> None:
    french = TASKS["french"]
    assert french.parse("\n- Un\n- Deux\n") == ("- Un\n- Deux",)
    assert not french.is_done("\n- Un\n- Deux\n")
    assert french.is_done("- Un\n- Deux\n\n")


def test_tasks_are_found_by_name_and_cannot_be_changed() -> None:
    assert get_task("hashtags") is HASHTAGS
    assert all(name == task.name for name, task in TASKS.items())
    with pytest.raises(SidecarError, match=r"no task 'poem'; choose one of hashtags, headline"):
        get_task("poem")
    with pytest.raises(TypeError):
        TASKS["poem"] = HASHTAGS  # type: ignore[index]


def test_every_suffix_continues_the_instructions_line_and_every_cue_starts_anew() -> None:
    for task in TASKS.values():
        assert task.suffix.startswith(" ")
        assert task.suffix.endswith(".")
        assert task.cue.startswith("\n\n")
        assert task.cue == task.cue.rstrip(" ")
        assert task.parse("") == ()
        assert not task.is_done("")


def test_a_free_task_takes_the_users_words() -> None:
    task = free_task("  Then write a haiku. ", "Haiku:")
    assert (task.suffix, task.cue) == (" Then write a haiku.", "\n\nHaiku:")
    assert task.parse(" Old pond\nfrog ") == ("Old pond\nfrog",)
    assert not task.is_done("Old pond\n\n")


@pytest.mark.parametrize(
    ("suffix", "cue", "message"),
    [("  ", "", "needs an instruction"), ("a" * 2001, "", "2,000"), ("a", "b" * 2001, "2,000")],
)
def test_a_free_task_is_checked(suffix: str, cue: str, message: str) -> None:
    with pytest.raises(SidecarError, match=message):
        free_task(suffix, cue)
