"""What the draft writes without a cue: as a plain greedy pass would, sorted by how it opens."""

from __future__ import annotations

import pytest

from sidecar_core.decoding.engine import Engine
from sidecar_core.experiments.corpus import Document
from sidecar_core.experiments.leak.without_cue import (
    CONDITIONS,
    Continued,
    outcome,
    pool_continued,
    without_cue,
)
from sidecar_core.experiments.records import InMemory
from sidecar_core.settings import RunSettings
from sidecar_core.text import TokenStream
from tests.decoding.composition import Layout, by_full_mask
from tests.experiments.calls import result_of, table_of
from tests.experiments.measured import ARTICLES, close_engine


@pytest.fixture(scope="module")
def close() -> Engine:
    return close_engine()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "ends"),
        ("\n\n", "ends"),
        ('\n\nHashtags: ["#sea"]', "tags"),
        ("\n\n**Hashtags:**", "tags"),
        ('["sea", "heat"]', "tags"),
        ("```json\n[", "tags"),
        ("\n#sea #heat", "tags"),
        ("Here are 3-5 short hashtags", "tags"),
        ("\n- The wall costs 41 million.", "goes on"),
        ("I hope this helps", "goes on"),
    ],
)
def test_a_continuation_is_sorted_by_how_it_opens(text: str, wanted: str):
    assert outcome(text) == wanted


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_draft_goes_on_as_under_a_full_mask(close: Engine, condition: str):
    """The oracle reads everything anew for each token; the summary's last token is the first row
    that sees the suffix."""
    records = InMemory()
    events = list(without_cue(close, [Document("a", ARTICLES[0])], records=records))
    (found,) = [e for e in events if isinstance(e, Continued) and e.condition == condition]
    prompt = close.build_prompts(ARTICLES[0], RunSettings()).draft
    (record,) = records._records.values()
    summary = [token for token in record.summary if token not in close.stop_ids]
    segments = [(s.name, s.ids) for s in prompt.segments]
    written: list[int] = []
    for _ in range(24):
        parts = (*segments, ("summary", tuple(summary[:-1])), ("cue", (summary[-1],)))
        layout = Layout((*parts, ("tags", tuple(written))))
        rows = by_full_mask(
            close.pair.draft,
            layout,
            suffix_masking=True,
            document_masking=condition == "masked",
            rebased=False,
        )
        token = int((rows["tags"] if written else rows["cue"])[-1].argmax())
        if token in close.stop_ids:
            break
        written.append(token)
    stream = TokenStream(close.pair.tokenizer)
    assert written
    assert found.text == "".join(map(stream.push, written)) + stream.flush()


def test_articles_are_pooled_and_an_opened_list_needs_no_cue():
    texts = ["", "#a #b", "- More.", "- More."]
    found = [Continued(str(n), "masked", text) for n, text in enumerate(texts)]
    masked = pool_continued(found)["conditions"]["masked"]
    assert (masked["ends"], masked["tags"], masked["goes_on"]) == (1, 1, 2)
    assert masked["needs_cue"] == 0.75
    low, high = masked["ci95"]
    assert low < 0.75 < high


@pytest.mark.slow
def test_the_command_counts_every_article(engine, corpus, capsys):
    found = result_of(capsys, "cue", corpus)
    for condition in found["conditions"].values():
        assert condition["articles"] == 2
        assert sum(condition[key] for key in ("ends", "tags", "goes_on")) == 2
    assert "needs a cue" in table_of(capsys, "cue", corpus)
