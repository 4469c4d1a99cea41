"""The same question gets the same answer, in every precision.

The oracle is the target alone, one row a pass, behind its prompt: whatever else a run does, its
text at temperature 0 is that text, token for token; and whatever the machine or other visitors do,
the same seed gives the same run, number for number.
"""

from __future__ import annotations

import dataclasses
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from sidecar_core.decoding.engine import Engine
from sidecar_core.decoding.prefix import PrefixStore
from sidecar_core.events import SummaryFinished, TagsFinished, TokenEvent
from sidecar_core.models.kernels.calibration import Calibration
from sidecar_core.models.pair import LoadedModel, Pair
from sidecar_core.prompts import DOCUMENT_OPENING, INSTRUCTION
from sidecar_core.settings import RunSettings
from tests.tiny_pair import tiny_engine

SENTENCE = "the council of old town voted for new boats bees and 1 blue red mayor <|end|> é 船"
PRECISIONS = ["int8", *(pytest.param(p, marks=pytest.mark.slow) for p in ("fp32", "bf16"))]
PLAIN = RunSettings(gamma=0, draft_prompt="identical", max_tokens=12)


def article(seed: int, length: int = 30) -> str:
    source, words = random.Random(seed), SENTENCE.split()
    return " ".join(source.choice(words) for _ in range(length))


def summary(engine: Engine, text: str, settings: RunSettings) -> tuple[int, ...]:
    return next(e.ids for e in engine.stream(text, settings) if isinstance(e, SummaryFinished))


def numbers(engine: Engine, text: str, settings: RunSettings) -> list[object]:
    """All of a run but the clock: ids, probabilities, overlaps, draws, tags.

    The taggers' results stand at the end: which of them is done first depends on how many chunks
    the standalone tagger's prompt is read in.
    """
    kept: list[object] = []
    tags = []
    for event in engine.stream(text, settings):
        if isinstance(event, TokenEvent | SummaryFinished):
            kept.append(dataclasses.replace(event, seconds=0.0))
        if isinstance(event, TagsFinished):
            tags.append((event.tagger, event.text, event.tags))
    return kept + sorted(tags)


def one_row_at_a_time(engine: Engine) -> Engine:
    """The oracle: no pass of its target has more than one row once the prompt is read."""
    slow = dataclasses.replace(
        engine.pair.target, calibration=Calibration(rows_alike=False), fingerprint="slow"
    )
    return Engine(dataclasses.replace(engine.pair, target=slow))


def calibrated(engine: Engine, **changes: object) -> Engine:
    """The same pair on a machine with another calibration: a cheap draft, so that auto drafts."""

    def other(model: LoadedModel, seconds: float) -> LoadedModel:
        fields = {"seconds": tuple(seconds + 0.01 * n for n in range(7)), **changes}
        return dataclasses.replace(model, calibration=Calibration(**fields))

    pair = engine.pair
    return Engine(
        dataclasses.replace(pair, target=other(pair.target, 1.0), draft=other(pair.draft, 0.1))
    )


@contextmanager
def busy_cores(threads: int = 2) -> Iterator[None]:
    """Other work on every core, as long as the block lasts."""
    over = threading.Event()

    def burn() -> None:
        block = torch.randn(200, 200)
        while not over.is_set():
            block = (block @ block).tanh()

    burners = [threading.Thread(target=burn) for _ in range(threads)]
    for burner in burners:
        burner.start()
    try:
        yield
    finally:
        over.set()
        for burner in burners:
            burner.join()


def changed(**changes: object) -> RunSettings:
    return dataclasses.replace(PLAIN, **changes)


WAYS = {
    "γ = 1": changed(gamma=1),
    "γ = 3": changed(gamma=3),
    "γ = 4": changed(gamma=4, draft_prompt="compound"),
    "γ = 8, suffix visible": changed(gamma=8, draft_prompt="compound", suffix_masking=False),
    "γ = 4, rebased": changed(gamma=4, draft_prompt="compound", positions="rebased"),
    "γ = 16, unrelated": changed(gamma=16, draft_prompt="unrelated"),
    "auto": changed(gamma="auto", draft_prompt="compound"),
}


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(30, 210, 30))]
)
def test_text_at_temperature_0_is_the_targets_own_however_it_is_drafted(precision, first):
    engine = calibrated(tiny_engine(precision))
    oracle = one_row_at_a_time(engine)
    seen = set()
    for seed in range(first, first + 30):
        text = article(seed)
        wanted = summary(oracle, text, PLAIN)
        seen.add(wanted)
        way = list(WAYS)[seed % len(WAYS)]
        assert summary(engine, text, WAYS[way]) == wanted, (seed, way)
        assert summary(engine, text, PLAIN) == wanted, seed
    assert len(seen) > 8  # else the articles would not tell the texts apart


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("temperature", [pytest.param(0.0, marks=pytest.mark.slow), 0.9])
def test_a_seed_gives_the_same_run_cold_warm_evicted_and_however_the_prompt_is_cut(
    precision, temperature
):
    settings = RunSettings(temperature=temperature, seed=5, max_tokens=12)
    engine = calibrated(tiny_engine(precision))
    for seed in range(4):
        text = article(seed, length=120)
        cold = numbers(engine, text, settings)
        assert numbers(engine, text, settings) == cold  # warm
        engine.store.clear()
        assert numbers(engine, text, settings) == cold  # evicted
        small = calibrated(tiny_engine(precision), chunk=32)
        large = calibrated(tiny_engine(precision), chunk=1024)
        assert numbers(small, text, settings) == cold
        assert numbers(large, text, settings) == cold


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_seed_gives_the_same_run_beside_others_and_on_busy_cores(precision):
    settings = RunSettings(temperature=0.7, seed=3, max_tokens=12)
    engine = calibrated(tiny_engine(precision))
    texts = [article(seed) for seed in range(4)]
    alone = [numbers(engine, text, settings) for text in texts]
    found: dict[int, list[object]] = {}

    def visit(place: int) -> None:
        found[place] = numbers(engine, texts[place], settings)

    visitors = [threading.Thread(target=visit, args=(place,)) for place in range(4)]
    with busy_cores():
        engine.store.clear()
        for visitor in visitors:
            visitor.start()
        for visitor in visitors:
            visitor.join()
    assert [found[place] for place in range(4)] == alone


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_visitor_with_a_text_built_to_collide_changes_no_other_visitors_run(precision):
    """The hostile one's draft prompt is token for token another's prompt, under other names."""
    text = article(1)
    hostile = RunSettings(
        draft_prompt="unrelated", draft_text=DOCUMENT_OPENING + text + INSTRUCTION, max_tokens=8
    )
    mine = RunSettings(suffix_masking=False, document_masking=True, max_tokens=12)
    for settings in (mine, dataclasses.replace(mine, suffix_masking=True)):
        wanted = numbers(tiny_engine(precision), text, settings)
        engine = tiny_engine(precision)
        for _ in engine.stream(article(2), hostile):
            pass
        assert numbers(engine, text, settings) == wanted


@pytest.fixture(
    scope="module",
    params=PRECISIONS,
)
def smol_engine(request) -> Engine:
    from sidecar_core.models.loading import load_pair

    return Engine(load_pair("smol", precision=request.param, device="cpu"))


@pytest.mark.slow
@pytest.mark.smol
def test_smol_writes_the_targets_own_text_however_it_is_drafted(smol_engine, example_texts):
    oracle = one_row_at_a_time(smol_engine)
    for text in example_texts[: 2 if smol_engine.pair.target.precision != "int8" else 1]:
        wanted = summary(oracle, text, changed(max_tokens=24))
        for way, settings in WAYS.items():
            settings = dataclasses.replace(settings, max_tokens=24)
            assert summary(smol_engine, text, settings) == wanted, way


@pytest.mark.slow
@pytest.mark.smol
def test_smol_gives_the_same_run_cold_and_warm_and_on_busy_cores(smol_engine, example_texts):
    settings = RunSettings(temperature=0.7, seed=11, max_tokens=32)
    text = example_texts[0]
    smol_engine.store.clear()
    cold = numbers(smol_engine, text, settings)
    assert numbers(smol_engine, text, settings) == cold
    with busy_cores():
        assert numbers(smol_engine, text, settings) == cold
        smol_engine.store.clear()
        assert numbers(smol_engine, text, settings) == cold


@pytest.mark.smol
def test_the_rows_of_real_weights_are_alike_on_this_machine(smol_engine):
    assert smol_engine.pair.target.calibration.rows_alike
    assert smol_engine.pair.draft.calibration.rows_alike


@pytest.mark.coder
def test_coder_writes_the_targets_own_text_in_int8(example_texts):
    from sidecar_core.models.loading import load_pair

    pair: Pair = load_pair("coder", precision="int8", device="cpu")
    assert pair.target.calibration.rows_alike
    engine = Engine(pair, PrefixStore())
    wanted = summary(one_row_at_a_time(engine), example_texts[0], changed(max_tokens=32))
    for way in ("γ = 3", "γ = 4", "auto"):
        settings = dataclasses.replace(WAYS[way], max_tokens=32)
        assert summary(engine, example_texts[0], settings) == wanted, way
