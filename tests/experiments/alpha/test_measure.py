"""α over several articles: measuring, keeping, pooling."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

import pytest

from sidecar_core.decoding.engine import Engine
from sidecar_core.experiments.alpha import measure as module
from sidecar_core.experiments.alpha.blocks import replayed
from sidecar_core.experiments.alpha.conditions import CONTROLS, STANDARD, choose
from sidecar_core.experiments.alpha.measure import measure
from sidecar_core.experiments.alpha.pooling import pool
from sidecar_core.experiments.corpus import Document, Skipped
from sidecar_core.experiments.readings import DocumentAlpha, Live, Reading, Step
from sidecar_core.experiments.records import (
    InMemory,
    Record,
    Records,
    record_key,
)
from sidecar_core.prompts import Prompt, Segment
from sidecar_core.report import RunReport
from sidecar_core.settings import COMPARED_GAMMA, RunSettings
from sidecar_core.tasks import HASHTAGS
from tests.experiments.measured import ARTICLES, DOCUMENTS, close_engine

ALL = STANDARD + CONTROLS
TOKENS = 40


@pytest.fixture(scope="module")
def engine() -> Engine:
    return close_engine()


def results(
    engine: Engine,
    documents: Sequence[Document] = DOCUMENTS,
    names: Sequence[str] = ALL,
    records: Records | InMemory | None = None,
    max_tokens: int = TOKENS,
) -> list[DocumentAlpha | Skipped]:
    items = measure(
        engine,
        documents,
        choose(names, engine, HASHTAGS),
        max_tokens=max_tokens,
        records=records,
    )
    return [item for item in items if not isinstance(item, Step)]


def document(name: str, *overlaps: Sequence[float], agreed: Sequence[bool] = ()) -> DocumentAlpha:
    """A result with given overlaps for identical, masked and visible."""
    names = ("identical", "masked", "visible")[: len(overlaps)]
    count = len(overlaps[0])
    readings = {
        n: Reading(tuple(o), tuple(agreed or [True] * count))
        for n, o in zip(names, overlaps, strict=True)
    }
    return DocumentAlpha(name, 10, (1,) * count, "length", Live(4, 1, 1, 1, 1, 1.0), readings)


def test_one_result_for_every_document_in_order_with_progress_between(engine):
    items = list(measure(engine, DOCUMENTS, choose(ALL, engine, HASHTAGS), max_tokens=TOKENS))
    found = [item for item in items if isinstance(item, DocumentAlpha)]
    assert [r.id for r in found] == [d.id for d in DOCUMENTS]
    assert all(list(r.readings) == list(ALL) for r in found)
    for item in found:
        before = items[: items.index(item)]
        assert {s.document for s in before if isinstance(s, Step)} >= {item.id}


def test_the_summary_is_the_targets_own_greedy_one(engine):
    for found, article in zip(results(engine, names=["identical"]), ARTICLES, strict=True):
        alone = RunReport.of(
            engine.stream(
                article, RunSettings(gamma=0, max_tokens=TOKENS, draft_prompt="identical")
            )
        )
        assert found.summary_ids == tuple(alone.ids)


def test_an_article_that_cannot_be_used_is_skipped_with_the_reason_and_the_rest_goes_on(engine):
    long = Document("long", "word " * 6_000)
    first, skipped, last = results(engine, [DOCUMENTS[0], long, DOCUMENTS[1]], ["identical"])
    assert isinstance(first, DocumentAlpha)
    assert isinstance(last, DocumentAlpha)
    assert skipped.where == "long"
    assert "tokens; the limit is" in skipped.why


def test_stop_ends_the_measurement_and_keeps_what_is_done(engine):
    done: list[DocumentAlpha] = []
    conditions = choose(["identical"], engine, HASHTAGS)
    items = measure(engine, DOCUMENTS, conditions, max_tokens=TOKENS, stop=lambda: len(done) == 1)
    done.extend(item for item in items if isinstance(item, DocumentAlpha))
    assert [r.id for r in done] == ["story-0"]


def test_a_stop_is_heard_among_articles_that_are_on_record(engine):
    records, done = InMemory(), list[DocumentAlpha]()
    results(engine, names=["identical"], records=records)
    conditions = choose(["identical"], engine, HASHTAGS)
    items = measure(
        engine,
        DOCUMENTS,
        conditions,
        max_tokens=TOKENS,
        records=records,
        stop=lambda: len(done) == 1,
    )
    done.extend(item for item in items if isinstance(item, DocumentAlpha))
    assert [r.id for r in done] == ["story-0"]


def test_records_in_memory_are_the_latest_only():
    records = InMemory(capacity=2)
    record = Record((1,), "stop", Live(4, 1, 1, 1, 1, 1.0))
    for key in "abc":
        records.save(key, record)
    assert [records.load(key) for key in "abc"] == [None, record, record]


# --- kept on disk -----------------------------------------------------------------------------


@pytest.fixture
def passes(engine, monkeypatch) -> list[int]:
    """Lengths of all forward passes of both models."""
    seen: list[int] = []
    for model in (engine.pair.target, engine.pair.draft):
        network = type(model.network)
        real = network.forward

        def counted(self, *args, _real=real, **kwargs):
            seen.append(kwargs["input_ids"].shape[1])
            return _real(self, *args, **kwargs)

        monkeypatch.setattr(network, "forward", counted)
    return seen


def test_a_rerun_runs_no_model_and_gives_the_same(engine, tmp_path, passes):
    records = Records(tmp_path)
    first = results(engine, records=records)
    assert passes
    passes.clear()
    assert results(engine, records=records) == first
    assert passes == []


def test_a_crash_loses_at_most_the_article_it_was_on(engine, tmp_path, passes, monkeypatch):
    real = module.read
    calls = []

    def crashing(*args, **kwargs):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    monkeypatch.setattr(module, "read", crashing)
    with pytest.raises(KeyboardInterrupt):
        results(engine, records=Records(tmp_path))
    passes.clear()
    monkeypatch.setattr(module, "read", real)
    found = results(engine, DOCUMENTS[:2], records=Records(tmp_path))
    assert passes == []
    assert found == results(engine, DOCUMENTS[:2])


def test_another_condition_is_measured_without_writing_the_summary_again(
    engine, tmp_path, monkeypatch
):
    records = Records(tmp_path)
    results(engine, names=["identical"], records=records)
    monkeypatch.setattr(engine, "stream", None)
    (found,) = results(engine, DOCUMENTS[:1], ["identical", "masked"], records)
    assert list(found.readings) == ["identical", "masked"]


def test_other_text_length_weights_or_words_of_the_suffix_are_other_measurements(engine, tmp_path):
    records = Records(tmp_path)

    def files() -> int:
        return len(list(tmp_path.iterdir()))

    results(engine, DOCUMENTS[:1], ["identical"], records)
    assert files() == 1
    results(engine, DOCUMENTS[:1], ["identical"], records, max_tokens=TOKENS - 1)
    assert files() == 2
    results(engine, [Document("story-0", ARTICLES[0] + " Done.")], ["identical"], records)
    assert files() == 3
    results(close_engine(noise=0.03), DOCUMENTS[:1], ["identical"], records)
    assert files() == 4
    one, other = (
        choose(["unrelated"], engine, HASHTAGS, text)[0] for text in ("", "Frere Jacques")
    )
    assert one.key != other.key


def test_a_record_is_named_by_all_that_it_follows_from(engine):
    prompt = engine.build_prompts(ARTICLES[0], RunSettings()).target
    head, document, *rest = prompt.segments
    moved = Prompt(
        (
            Segment("head", (*head.ids, document.ids[0])),
            Segment("document", document.ids[1:]),
            *rest,
        )
    )
    assert moved.ids == prompt.ids
    target = dataclasses.replace(engine.pair.target, eos_ids=frozenset({1}))
    ends = Engine(dataclasses.replace(engine.pair, target=target))
    keys = [
        record_key(engine, prompt, 200, 4),
        record_key(engine, moved, 200, 4),
        record_key(engine, prompt, 100, 4),
        record_key(engine, prompt, 200, 3),
        record_key(ends, prompt, 200, 4),
    ]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"\xff", b'{"summary": [], "reason": "x"}'])
def test_a_damaged_record_is_measured_again(engine, tmp_path, damage):
    records = Records(tmp_path)
    first = results(engine, DOCUMENTS[:1], ["identical"], records)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage)
    assert results(engine, DOCUMENTS[:1], ["identical"], records) == first
    assert file.read_bytes() == whole


def test_a_record_whose_reading_is_too_short_is_measured_again(engine, tmp_path):
    records = Records(tmp_path)
    first = results(engine, DOCUMENTS[:1], ["identical"], records)
    (file,) = tmp_path.iterdir()
    data = json.loads(file.read_text())
    next(iter(data["readings"].values()))["overlaps"].pop()
    file.write_text(json.dumps(data))
    assert results(engine, DOCUMENTS[:1], ["identical"], records) == first


# --- pooling ----------------------------------------------------------------------------------


def test_alpha_is_pooled_over_positions_not_over_documents():
    short, long = document("a", [0.2] * 10), document("b", [0.6] * 30)
    found = pool([short, long], gamma=4, max_tokens=200)
    assert found["conditions"]["identical"]["alpha"] == pytest.approx(0.5)
    assert found["conditions"]["identical"]["positions"] == 40
    assert found["conditions"]["identical"]["documents"] == 2
    assert found["conditions"]["identical"]["ci95"] is None  # two articles are too few
    assert [d["alpha"]["identical"] for d in found["per_document"]] == pytest.approx([0.2, 0.6])


def test_differences_are_paired_and_the_decomposition_adds_up():
    found = pool(
        [
            document("a", [0.5] * 10, [0.48] * 10, [0.43] * 10),
            document("b", [0.9] * 10, [0.88] * 10, [0.83] * 10),
            document("c", [0.7] * 10, [0.68] * 10, [0.63] * 10),
        ],
        gamma=4,
        max_tokens=200,
    )
    masked, parts = found["differences"]["masked"], found["decomposition"]
    assert masked["difference"] == pytest.approx(-0.02)
    assert masked["ci95"] == pytest.approx([-0.02, -0.02])
    assert masked["relative"] == pytest.approx(-0.02 / 0.7)
    assert parts["position_cost"]["difference"] == pytest.approx(0.02)
    assert parts["content_leak"]["difference"] == pytest.approx(0.05)
    whole = -found["differences"]["visible"]["difference"]
    assert whole == pytest.approx(
        parts["position_cost"]["difference"] + parts["content_leak"]["difference"]
    )
    assert "tail_leak" not in parts


def test_one_document_has_figures_but_no_intervals():
    found = pool([document("a", [0.5] * 10, [0.4] * 10)], gamma=4, max_tokens=200)
    assert found["conditions"]["masked"]["ci95"] is None
    assert found["differences"]["masked"]["ci95"] is None
    assert found["differences"]["masked"]["difference"] == pytest.approx(-0.1)


def test_depth_says_where_in_the_summary_alpha_falls():
    early = [0.5] * 8 + [0.9] * 12
    found = pool([document("a", [0.9] * 20, early), document("b", [0.9] * 8, [0.5] * 8)],
                 gamma=4, max_tokens=200)  # fmt: skip
    first, second, third = found["depth"]
    assert (first["from"], first["to"], first["positions"]) == (1, 8, 16)
    assert (second["from"], second["to"], second["positions"]) == (9, 16, 8)
    assert third["positions"] == 4
    assert first["minus_identical"]["masked"]["difference"] == pytest.approx(-0.4)
    assert second["minus_identical"]["masked"]["difference"] == pytest.approx(0.0)
    assert second["minus_identical"]["masked"]["ci95"] is None
    assert sum(band["positions"] for band in found["depth"]) == 28


def test_nothing_measured_is_nothing_shown():
    assert pool([], gamma=4, max_tokens=200)["conditions"] == {}


def test_the_pooled_result_is_json(engine):
    json.dumps(pool(results(engine), gamma=4, max_tokens=TOKENS), allow_nan=False)


# --- draft blocks -----------------------------------------------------------------------------


def test_blocks_of_a_pattern_that_can_be_counted_by_hand():
    agreed = [True, True, False, True, True, True, True, False]
    reading = Reading((0.5,) * 8, tuple(agreed))
    blocks = replayed([reading], gamma=2, max_tokens=200)
    # [1 1 | corrected by bonus] [1 1 | bonus] [1, 0]: 3 + 3 + 2 tokens
    assert blocks.passes == 3
    assert blocks.judged == 6
    assert blocks.accepted == 5
    assert [place.judged for place in blocks.places] == [3, 3]
    assert [place.accepted for place in blocks.places] == [3, 2]


@pytest.mark.parametrize("gamma", [1, 2, 4, 7])
@pytest.mark.parametrize("max_tokens", [13, 40])
def test_replayed_blocks_are_those_of_the_live_run(engine, gamma, max_tokens):
    items = measure(
        engine,
        DOCUMENTS,
        choose(["identical"], engine, HASHTAGS),
        max_tokens=max_tokens,
        gamma=gamma,
    )
    found = [item for item in items if isinstance(item, DocumentAlpha)]
    for result in found:
        blocks = replayed([result.readings["identical"]], gamma, max_tokens)
        assert blocks.passes == result.live.passes
        assert blocks.judged == result.live.judged
        assert blocks.accepted == result.live.accepted
        assert blocks.alpha == pytest.approx(result.live.overlap / result.live.judged, abs=1e-5)
    pooled = pool(found, gamma=gamma, max_tokens=max_tokens)
    greedy = pooled["conditions"]["identical"]["greedy"]
    assert greedy["tokens_per_pass"] == pooled["live"]["tokens_per_pass"]
    assert greedy["acceptance_rate"] == pooled["live"]["acceptance_rate"]


@pytest.mark.slow
@pytest.mark.smol
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("masked", {"draft_prompt": "compound"}),
        ("visible", {"draft_prompt": "compound", "suffix_masking": False}),
    ],
)
def test_replayed_blocks_are_those_of_the_live_run_on_real_weights(smol, name, settings):
    engine = Engine(smol)
    (found,) = results(engine, DOCUMENTS[:1], ["identical", name], max_tokens=32)
    live = RunReport.of(
        engine.stream(ARTICLES[0], RunSettings(max_tokens=32, gamma=COMPARED_GAMMA, **settings))
    )
    assert found.summary_ids == tuple(live.ids)
    blocks = replayed([found.readings[name]], 4, 32)
    assert (blocks.passes, blocks.judged, blocks.accepted) == (
        live.target_passes,
        live.judged,
        live.accepted,
    )
    assert blocks.alpha == pytest.approx(live.alpha, abs=1e-5)
