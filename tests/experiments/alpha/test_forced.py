"""Teacher forcing by composed caches, against one full pass with a mask, and against live runs."""

from __future__ import annotations

import math

import pytest
import torch

from sidecar_core.decoding.draft_length import Fixed
from sidecar_core.decoding.engine import Engine
from sidecar_core.decoding.sampling import Sampler, overlap
from sidecar_core.decoding.speculative import Clock, Decoding, speculate
from sidecar_core.errors import Cancelled, SidecarError
from sidecar_core.events import TokenAccepted, TokenBonus, TokenCorrected, TokenRejected
from sidecar_core.experiments.alpha import forced
from sidecar_core.experiments.alpha.conditions import (
    CONTROLS,
    STANDARD,
    Condition,
    check_names,
    choose,
)
from sidecar_core.experiments.alpha.forced import read
from sidecar_core.experiments.readings import Reading, Step
from sidecar_core.prompts import Prompt, Segment
from sidecar_core.settings import COMPARED_GAMMA, RunSettings
from sidecar_core.tasks import FRENCH, HASHTAGS
from sidecar_core.visibility import full_mask, positions
from tests.experiments.measured import ARTICLES, close_engine
from tests.toys import NoText, ToySide

ALL = STANDARD + CONTROLS


def prompt_of(engine: Engine, article: str = ARTICLES[0]) -> Prompt:
    return engine.build_prompts(article, RunSettings(draft_prompt="identical")).target


def some_summary(engine: Engine, length: int = 23) -> tuple[int, ...]:
    source = torch.Generator().manual_seed(5)
    return tuple(torch.randint(0, engine.pair.vocab_size, (length,), generator=source).tolist())


def readings(engine: Engine, summary: tuple[int, ...], *names: str) -> dict[str, Reading]:
    steps = read(engine, prompt_of(engine), summary, choose(names, engine, HASHTAGS))
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            return finished.value


@torch.inference_mode()
def in_one_pass(
    engine: Engine, prompt: Prompt, summary: tuple[int, ...], *, target: bool = False
) -> torch.Tensor:
    """Probabilities [tokens, vocabulary] behind a plain causal prompt: no cache, no mask."""
    model = engine.pair.target if target else engine.pair.draft
    ids = torch.tensor([[*prompt.ids, *summary]])
    logits = model.network(input_ids=ids, use_cache=False).logits[0, -len(summary) - 1 : -1]
    return logits[:, : engine.pair.vocab_size].softmax(-1)


@torch.inference_mode()
def under_a_mask(engine: Engine, summary: tuple[int, ...], name: str) -> torch.Tensor:
    """The same for the compound prompt, by one full pass with a 4-D mask."""
    suffix = FRENCH.suffix if name == "translation" else HASHTAGS.suffix
    prompt = engine.prompts.article(ARTICLES[0], suffix)
    segments = (*prompt.segments, Segment("summary", summary))
    lengths = [(segment.name, len(segment)) for segment in segments]
    mask = full_mask(lengths, suffix_masking=name in ("masked", "rebased"), document_masking=False)
    if name == "leaky-tail":
        end = len(prompt)
        hidden = prompt.span("suffix")
        mask[..., end:, hidden.start : hidden.stop] = False
    logits = engine.pair.draft.network(
        input_ids=torch.tensor([[t for segment in segments for t in segment.ids]]),
        attention_mask=mask,
        position_ids=torch.tensor([positions(lengths, rebased=name == "rebased")]),
        use_cache=False,
    ).logits[0, -len(summary) - 1 : -1]
    return logits[:, : engine.pair.vocab_size].softmax(-1)


def oracle(engine: Engine, summary: tuple[int, ...], name: str) -> torch.Tensor:
    """Overlaps [tokens] of a condition, the plain slow way."""
    p = in_one_pass(engine, prompt_of(engine), summary, target=True)
    if name == "identical":
        q = in_one_pass(engine, prompt_of(engine), summary)
    elif name == "unrelated":
        q = in_one_pass(engine, engine.prompts.text_only("Yankee Doodle"), summary)
    else:
        q = under_a_mask(engine, summary, name)
    return torch.minimum(p, q).sum(-1)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return close_engine()


@pytest.mark.parametrize("name", ALL)
def test_every_condition_equals_one_full_pass_with_a_mask(engine, name):
    summary = some_summary(engine)
    found = readings(engine, summary, name)[name]
    wanted = oracle(engine, summary, name)
    assert found.overlaps == pytest.approx(wanted.tolist(), abs=1e-5)


@pytest.mark.smol
@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_every_condition_equals_one_full_pass_with_a_mask_on_real_weights(smol, name):
    engine = Engine(smol)
    summary = engine.prompts.plain("- The council votes for new boilers.\n- Rents are frozen.")
    found = readings(engine, summary, name)[name]
    wanted = oracle(engine, summary, name)
    assert found.overlaps == pytest.approx(wanted.tolist(), abs=1e-4)
    assert sum(found.overlaps) / len(summary) == pytest.approx(float(wanted.mean()), abs=1e-5)


@pytest.mark.parametrize("rows", [1, 2, 7, 22, 23, 64])
def test_the_number_of_rows_at_a_time_changes_nothing(engine, monkeypatch, rows):
    summary = some_summary(engine)
    whole = readings(engine, summary, *ALL)
    monkeypatch.setattr(forced, "ROWS", rows)
    parts = readings(engine, summary, *ALL)
    for name in ALL:
        assert parts[name].overlaps == pytest.approx(whole[name].overlaps, abs=1e-5)
        assert parts[name].agreed == whole[name].agreed


def test_rebased_equals_identical_and_the_others_differ(engine):
    found = readings(engine, some_summary(engine), *ALL)
    base = found["identical"].overlaps
    assert found["rebased"].overlaps == pytest.approx(base, abs=1e-5)
    for name in set(ALL) - {"identical", "rebased"}:
        assert max(abs(a - b) for a, b in zip(found[name].overlaps, base, strict=True)) > 1e-3


def test_a_draft_with_the_targets_weights_has_alpha_one_under_identical():
    engine = close_engine(noise=0.0)
    found = readings(engine, some_summary(engine), "identical", "rebased", "visible")
    assert found["identical"].overlaps == pytest.approx([1.0] * 23, abs=1e-5)
    assert found["rebased"].overlaps == pytest.approx([1.0] * 23, abs=1e-5)
    assert sum(found["visible"].overlaps) / 23 < 0.99


def test_a_wider_target_is_cut_to_the_common_vocabulary_before_the_softmax():
    engine = close_engine(noise=0.0, wider=12)
    assert engine.pair.target.vocab_size == engine.pair.draft.vocab_size + 12
    found = readings(engine, some_summary(engine), "identical")["identical"]
    assert found.overlaps == pytest.approx([1.0] * 23, abs=1e-5)


def test_a_summary_of_one_token_can_be_measured(engine):
    found = readings(engine, some_summary(engine, 1), *ALL)
    for name in ALL:
        wanted = oracle(engine, some_summary(engine, 1), name)
        assert found[name].overlaps == pytest.approx(wanted.tolist(), abs=1e-5)


def test_agreed_says_whether_the_drafts_likeliest_token_is_the_summarys(engine):
    summary = some_summary(engine)
    found = readings(engine, summary, "identical")["identical"]
    best = in_one_pass(engine, prompt_of(engine), summary).argmax(-1)
    assert found.agreed == tuple((best == torch.tensor(summary)).tolist())


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("identical", {"draft_prompt": "identical"}),
        ("masked", {"draft_prompt": "compound"}),
        ("visible", {"draft_prompt": "compound", "suffix_masking": False}),
        ("rebased", {"draft_prompt": "compound", "positions": "rebased"}),
        ("unrelated", {"draft_prompt": "unrelated"}),
    ],
)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_closed_form_is_what_the_live_loop_reports_on_the_same_path(
    engine, name, settings, temperature
):
    live: dict[int, float] = {}
    ids: list[int] = []
    run = RunSettings(
        max_tokens=40, temperature=temperature, seed=3, gamma=COMPARED_GAMMA, **settings
    )
    for event in engine.stream(ARTICLES[0], run):
        if isinstance(event, TokenAccepted | TokenRejected):
            live[len(ids)] = event.overlap
        if isinstance(event, TokenAccepted | TokenCorrected | TokenBonus):
            ids.append(event.id)
    overlaps = readings(engine, tuple(ids), name)[name].overlaps
    assert len(live) >= 10
    for place, shared in live.items():
        assert overlaps[place] == pytest.approx(shared, abs=1e-5)
    alpha = sum(overlaps[place] for place in live) / len(live)
    assert alpha == pytest.approx(sum(live.values()) / len(live), abs=1e-5)


def test_two_thousand_live_proposals_are_accepted_as_often_as_alpha_says():
    source = torch.Generator().manual_seed(2)
    p, q = (2.0 * torch.randn(12, generator=source) for _ in range(2))
    alpha = float(overlap(p.softmax(-1), q.softmax(-1)))
    decoding = Decoding(
        Sampler(1.0), Fixed(4), 4_000, frozenset(), 12, torch.Generator().manual_seed(0)
    )
    fates = [
        isinstance(event, TokenAccepted)
        for event in speculate(ToySide(p), ToySide(q), decoding, NoText(), Clock())
        if isinstance(event, TokenAccepted | TokenRejected)
    ][:2_000]
    assert len(fates) == 2_000
    margin = 1.96 * math.sqrt(alpha * (1 - alpha) / 2_000)
    assert 0.2 < alpha < 0.8
    assert sum(fates) / 2_000 == pytest.approx(alpha, abs=margin)


def test_what_all_conditions_share_is_read_once(engine, monkeypatch):
    engine.store.clear()
    read_tokens: dict[str, int] = {}
    real = forced.forward

    def counted(model, cache, ids, position, **options):
        read_tokens[model.name] = read_tokens.get(model.name, 0) + len(ids)
        return real(model, cache, ids, position, **options)

    monkeypatch.setattr("sidecar_core.decoding.prefix.forward", counted)
    monkeypatch.setattr(forced, "forward", counted)
    summary, prompt = some_summary(engine), prompt_of(engine)
    readings(engine, summary, *ALL)
    answer = len(prompt.segment("tail")) + len(summary) - 1
    prefix = len(prompt) - len(prompt.segment("tail"))
    suffixes = len(engine.prompts.plain(HASHTAGS.suffix)) + len(engine.prompts.plain(FRENCH.suffix))
    other = len(engine.prompts.text_only("Yankee Doodle")) - len(prompt.segment("tail"))
    assert read_tokens[engine.pair.target.name] == prefix + answer
    assert read_tokens["draft"] == prefix + other + suffixes + 7 * answer


def test_no_block_of_distributions_grows_with_the_summary(engine, monkeypatch):
    sizes = []
    real = forced.overlap
    monkeypatch.setattr(forced, "overlap", lambda p, q: sizes.append(len(q)) or real(p, q))
    readings(engine, some_summary(engine, 300), "identical", "masked")
    assert max(sizes) <= 1.5 * forced.ROWS
    assert min(sizes) >= 0.5 * forced.ROWS
    assert sum(sizes) == 2 * 300


def test_progress_names_the_article_and_every_condition(engine):
    steps = list(
        read(
            engine,
            prompt_of(engine),
            some_summary(engine),
            choose(ALL, engine, HASHTAGS),
            document="story",
        )
    )
    assert all(isinstance(s, Step) and s.document == "story" for s in steps)
    assert [s.condition for s in steps if s.condition] == list(ALL)
    assert all(0 <= s.alpha <= 1 for s in steps if s.condition)


def test_stop_is_obeyed_between_conditions(engine):
    seen = []
    steps = read(
        engine,
        prompt_of(engine),
        some_summary(engine),
        choose(ALL, engine, HASHTAGS),
        stop=lambda: len(seen) >= 2,
    )
    with pytest.raises(Cancelled):
        seen.extend(step.condition for step in steps if step.condition)
    assert seen == ["identical", "visible"]


def test_a_suffix_for_which_the_models_have_no_room_is_refused(engine):
    with pytest.raises(SidecarError, match="the models have 4,096"):
        list(read(engine, prompt_of(engine), (1, 2), [Condition("masked-5000", room=5_000)]))


def test_unknown_conditions_and_none_at_all_are_refused():
    with pytest.raises(SidecarError, match="no condition 'maskd'; choose from identical"):
        check_names(["identical", "maskd"])
    with pytest.raises(SidecarError, match="at least one"):
        check_names([])
    assert check_names(["masked", "identical", "masked"]) == ("masked", "identical")
