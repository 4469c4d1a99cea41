"""Whatever comes in, the answer is a valid value or a SidecarError, and what is shown is inert.

Inputs are random but the same in every run.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from html.parser import HTMLParser
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sidecar_core.errors import SidecarError
from sidecar_core.events import (
    EVENTS,
    Event,
    TagsFinished,
    TokenEvent,
    from_json,
    to_json,
)
from sidecar_core.experiments.corpus import read_jsonl as read_articles
from sidecar_core.page.controls import SETTINGS, RunInputs
from sidecar_core.page.edge import read_upload
from sidecar_core.page.links import FIELDS, from_query, to_query
from sidecar_core.prompts import Article, PromptBuilder, check_article
from sidecar_core.report import RunReport, TaggerReport
from sidecar_core.settings import RANGES, RunSettings
from sidecar_core.view import render
from sidecar_core.view.attention_map import attention_map
from sidecar_core.view.run_view import LiveRun
from sidecar_core.view.runs_table import runs_table
from sidecar_core.view.tag_column import column
from tests.toy_tokenizers import NOT_SPECIAL, SPECIAL, toy_tokenizer

steady = settings(
    max_examples=50,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
"""The same examples everywhere, and no clock."""

TOKENIZER = toy_tokenizer()
BUILDER = PromptBuilder(TOKENIZER)
SPECIAL_IDS = frozenset(TOKENIZER.convert_tokens_to_ids([*SPECIAL, *NOT_SPECIAL]))

T = TypeVar("T")


def in_words(action: Callable[[], T]) -> T | None:
    """What `action` gives, or None where it was refused with one line for a reader."""
    try:
        return action()
    except SidecarError as error:
        line = str(error)
    assert line
    assert "\n" not in line
    assert len(line) < 500
    return None


marks = st.text(st.characters(categories=["Mn", "Me", "Cf"]), min_size=50, max_size=300)
words = st.sampled_from(
    [*SPECIAL, *NOT_SPECIAL, "<|im_end|>", "</s>", "<script>", '"', "'", "&amp;", "\x00", "\ud800"]
)
anything = st.text(st.characters(exclude_categories=[]), max_size=80)
texts = st.one_of(anything, marks, st.lists(st.one_of(words, anything), max_size=8).map("".join))
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**400, -(10**400), 2**63]),
    st.floats(),
    st.integers(-20, 20),
    st.floats(0, 3),
    texts,
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)


# --- prompts ------------------------------------------------------------------------------------


@steady
@given(texts)
def test_no_text_becomes_a_special_token(text: str) -> None:
    assert not SPECIAL_IDS & set(BUILDER.plain(text))


@steady
@given(texts)
def test_an_article_is_refused_in_words_or_is_a_prompt_of_bounded_length(text: str) -> None:
    article = in_words(lambda: check_article(text, BUILDER, 200))
    if article is None:
        return
    prompt = BUILDER.article(article.text, " Tags.")
    assert 0 < len(prompt.segment("document")) <= 200
    assert not SPECIAL_IDS & set(prompt.segment("document").ids)
    assert sum(length for _, length in prompt.lengths) == len(prompt)
    assert prompt.without("suffix").segment("document") == prompt.segment("document")


@steady
@given(texts, st.integers(1, 40))
def test_the_first_tokens_of_any_text_are_at_most_so_many(text: str, limit: int) -> None:
    cut = BUILDER.first_tokens(text, limit)
    assert len(BUILDER.plain(cut)) <= limit


# --- settings and links -------------------------------------------------------------------------


def check_valid(found: RunSettings | None) -> None:
    if found is None:
        return
    for name, limits in RANGES.items():
        value = getattr(found, name)
        if value == "auto":
            assert name == "gamma"
            continue
        assert math.isfinite(value)
        assert limits.low <= value <= limits.high


@steady
@given(st.dictionaries(st.sampled_from(FIELDS), json_values))
@example({"gamma": 10**400})
@example({"draft_prompt": "x" * 100_000})
def test_any_json_for_the_settings_is_valid_or_refused_in_words(values: dict[str, Any]) -> None:
    check_valid(in_words(dataclasses.replace(RunSettings(), **values).validate))


@steady
@given(st.lists(json_values, min_size=len(SETTINGS), max_size=len(SETTINGS)))
def test_any_json_from_the_pages_controls_is_valid_or_refused_in_words(values: list[Any]) -> None:
    check_valid(in_words(lambda: RunInputs("", *values).settings()))


@steady
@given(st.dictionaries(st.sampled_from([*FIELDS, "scenario", "__theme"]), texts))
def test_any_link_is_settings_or_refused_in_words(query: dict[str, str]) -> None:
    check_valid(in_words(lambda: from_query(query)[0]))


def valid_settings() -> st.SearchStrategy[RunSettings]:
    numbers = {
        name: st.integers(int(r.low), int(r.high)) if r.integer else st.floats(r.low, r.high)
        for name, r in RANGES.items()
    }
    return st.builds(
        RunSettings,
        draft_prompt=st.sampled_from(["compound", "identical"]),
        draft_text=st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
        suffix_masking=st.booleans(),
        document_masking=st.booleans(),
        positions=st.sampled_from(["natural", "rebased"]),
        **numbers | {"gamma": numbers["gamma"] | st.just("auto")},
    )


@steady
@given(valid_settings())
def test_a_link_brings_back_the_settings_that_it_was_made_from(found: RunSettings) -> None:
    query = dict(parse_qsl(to_query(found), keep_blank_values=True))
    assert from_query(query) == (found, None)


# --- events -------------------------------------------------------------------------------------


def value_of(hint: Any) -> st.SearchStrategy[Any]:
    """Random values of an event field's type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, UnionType):
        return st.one_of(*map(value_of, arguments))
    if origin is tuple and arguments[-1:] == (...,):
        return st.lists(value_of(arguments[0]), max_size=4).map(tuple)
    if origin is tuple:
        return st.tuples(*map(value_of, arguments))
    if origin is dict:
        inner = st.floats(0, 9) if arguments[1] is float else st.integers(0, 9)
        return st.dictionaries(st.text(max_size=5), inner, max_size=3)
    return {
        str: texts,
        int: st.integers(0, 2**40),
        float: st.floats(0, 1e6, allow_nan=False),
        bool: st.booleans(),
        type(None): st.none(),
    }[hint]


def events_of(cls: type[Event]) -> st.SearchStrategy[Event]:
    hints = get_type_hints(cls)
    return st.builds(cls, **{f.name: value_of(hints[f.name]) for f in dataclasses.fields(cls)})


some_event = st.one_of(*map(events_of, EVENTS.values()))


@steady
@given(some_event)
def test_a_random_event_survives_json_unchanged(event: Event) -> None:
    line = to_json(event)
    assert line.isascii()
    assert from_json(line) == event


@steady
@given(json_values)
def test_any_json_is_an_event_or_refused_in_words(value: Any) -> None:
    with pytest.raises(SidecarError):
        from_json(json.dumps(value))


@steady
@given(st.sampled_from(sorted(EVENTS)), st.dictionaries(st.text(max_size=8), json_values))
def test_any_fields_of_an_event_are_refused_or_can_be_written_again(
    kind: str, fields: dict[str, Any]
) -> None:
    event = in_words(lambda: from_json(json.dumps({**fields, "event": kind})))
    if event is not None:
        assert type(event).__name__ == kind
        assert json.loads(to_json(event))["event"] == kind


@steady
@given(st.binary(max_size=200))
def test_any_bytes_are_an_event_or_refused_in_words(data: bytes) -> None:
    in_words(lambda: from_json(data.decode("utf-8", "replace")))


# --- what is shown ------------------------------------------------------------------------------

INSPECTED = {"data-round", "data-why", "data-overlap", "data-likeliest"}
"""What a token carries for the overlap inspector."""
ALLOWED = {
    "span": {"class", "title", "aria-hidden", *INSPECTED},
    "del": {"class", "title", *INSPECTED},
    "i": {"class", "title"},
    "b": {"class"},
    "p": {"class"},
    "ul": {"class"},
    "li": {"class", "title"},
    "table": {"class"},
    "caption": {"class"},
    "thead": set(),
    "tbody": set(),
    "tr": {"class"},
    "th": {"scope", "class", "title"},
    "td": {"class", "title"},
    "div": {"class"},
    "small": set(),
}
"""Elements of the page's own making, and their attributes."""


class Inspector(HTMLParser):
    """Collects whatever is not allowed."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if tag not in ALLOWED or set(names) - ALLOWED[tag]:
            self.found.append(f"<{tag} {' '.join(names)}>")

    def handle_comment(self, data: str) -> None:
        self.found.append(f"<!--{data}")

    def handle_decl(self, decl: str) -> None:
        self.found.append(f"<!{decl}")


def strange(*parts: str) -> list[str]:
    inspector = Inspector()
    for part in parts:
        inspector.feed(part)
    inspector.close()
    return inspector.found


markup = st.one_of(
    texts,
    st.sampled_from(
        [
            "<img src=x onerror=alert(1)>",
            '"><script>alert(1)</script>',
            "' onmouseover='alert(1)",
            "</span></div><iframe src=//x>",
            "<!-- -->",
            "<b onclick=x>",
            "&lt;script&gt;",
            "<svg/onload=x>",
            "{{x}}${x}",
        ]
    ),
)
token_events = st.one_of(*(events_of(cls) for cls in render.KINDS))


def with_markup(event: TokenEvent, text: str) -> TokenEvent:
    return dataclasses.replace(event, text=text)


@steady
@given(st.builds(with_markup, token_events, markup))
def test_any_token_is_one_element_of_our_own(event: TokenEvent) -> None:
    assert strange(render.token(event)) == []


@steady
@given(st.lists(st.one_of(some_event, st.builds(with_markup, token_events, markup)), max_size=6))
def test_any_order_of_events_is_shown_by_elements_of_our_own(events: list[Event]) -> None:
    run = LiveRun(Article.of("doc"), RunSettings())
    for event in events:
        run.stream.add(event)
    stream = run.stream.value()
    assert strange(stream["done"], stream["pending"]) == []


@steady
@given(markup, markup, markup, st.lists(markup, max_size=4))
def test_what_taggers_write_is_text(raw: str, summary: str, document: str, tags: Any) -> None:
    finished = TagsFinished("sidecar", raw, tuple(tags), raw, 1, 2, 3, 0.5)
    for report in (
        TaggerReport(raw, finished),
        TaggerReport(raw),
        TaggerReport(skipped=raw),
    ):
        shown = column(report, summary, document)
        assert strange(shown["raw"], shown["list"]) == []


@steady
@given(markup, markup)
def test_the_status_the_table_of_runs_and_the_map_show_text(words: str, article: str) -> None:
    found = render.status(words)["message"]
    run = LiveRun(
        Article.of(article), RunSettings(draft_prompt="unrelated", draft_text=words or "x")
    )
    table = runs_table([run.record(1)])
    lengths = {"head": 3, "document": len(article), "suffix": 2, "tail": 1}
    assert strange(found, table, attention_map(lengths, run.settings)) == []
    assert RunReport().as_dict()["alpha"] is None


# --- uploads ------------------------------------------------------------------------------------


@steady
@given(st.one_of(st.binary(max_size=300), texts.map(lambda t: t.encode("utf-8", "replace"))))
def test_an_upload_is_text_or_refused_in_words(data: bytes) -> None:
    text = in_words(lambda: read_upload(data))
    assert text is None or text.encode() in (data, data.removeprefix(b"\xef\xbb\xbf"))


line = st.one_of(
    st.binary(max_size=60).map(lambda data: data.replace(b"\n", b"")),
    json_values.map(lambda value: json.dumps(value).encode()),
    st.dictionaries(st.sampled_from(["id", "text", "article"]), json_values).map(
        lambda value: json.dumps(value).encode()
    ),
)


@steady
@given(st.lists(line, max_size=6))
def test_a_corpus_is_articles_and_named_skips_or_refused_in_words(lines: list[bytes]) -> None:
    corpus = in_words(lambda: read_articles("upload.jsonl", b"\n".join(lines)))
    if corpus is None:
        return
    assert corpus.documents
    assert all(document.text.strip() for document in corpus.documents)
    assert len({document.id for document in corpus.documents}) == len(corpus.documents)
    assert all("upload.jsonl" in skipped.where and skipped.why for skipped in corpus.skipped)
