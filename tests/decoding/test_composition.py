"""Masking by composing caches equals a 4-D mask over one full pass."""

from __future__ import annotations

import itertools

import pytest
import torch

from sidecar_core.models.pair import Pair
from sidecar_core.prompts import PromptBuilder
from sidecar_core.tasks import HASHTAGS
from tests.decoding.composition import Layout, by_full_mask, largest_difference
from tests.tiny import tiny_model

ARTICLE = """The harbour council of Marlow Quay voted on Tuesday to close the old fish market \
and to build a flood wall in its place. Engineers had warned that the quay sinks by nine \
millimetres a year. Stall owners will move to a hall on Tern Street; their rent is frozen until \
the wall stands. Work begins in March and is to cost 41 million."""

SUMMARY = """- Marlow Quay closes its fish market to build a flood wall.
- Stall owners move to a hall, with rent frozen.
- Work starts in March and costs 41 million."""

SETTINGS = [
    pytest.param(
        {"suffix_masking": s, "document_masking": d, "rebased": r, "deferred": False},
        id=f"suffix-{'masked' if s else 'visible'} document-{'masked' if d else 'attended'} "
        f"{'rebased' if r else 'natural'}",
    )
    for s, d, r in itertools.product([True, False], repeat=3)
] + [
    pytest.param(
        {"suffix_masking": True, "document_masking": d, "rebased": False, "deferred": True},
        id=f"deferred document-{'masked' if d else 'attended'}",
    )
    for d in (True, False)
]


def real_layout(pair: Pair) -> Layout:
    builder = PromptBuilder(pair.tokenizer)
    prompt = builder.article(ARTICLE, HASHTAGS.suffix)
    parts = {segment.name: segment.ids for segment in prompt.segments}
    parts["summary"] = builder.plain(SUMMARY)
    parts["cue"] = builder.plain(HASHTAGS.cue)
    parts["tags"] = builder.plain('flood-wall", "fish-market", "')
    return Layout(tuple(parts.items()))


def tiny_layout() -> Layout:
    source = torch.Generator().manual_seed(3)
    sizes = {
        "head": 3, "document": 12, "instruction": 4, "suffix": 5,
        "tail": 2, "summary": 7, "cue": 3, "tags": 4,
    }  # fmt: skip
    return Layout(
        tuple(
            (name, tuple(torch.randint(0, 40, (size,), generator=source).tolist()))
            for name, size in sizes.items()
        )
    )


@pytest.mark.parametrize("settings", SETTINGS)
def test_composition_equals_the_full_mask_on_tiny_random_weights(settings):
    assert largest_difference(tiny_model(0, layers=3), tiny_layout(), **settings) < 1e-4


@pytest.mark.smol
@pytest.mark.parametrize(
    "settings",
    [
        SETTINGS[0],
        *(pytest.param(*s.values, id=s.id, marks=pytest.mark.slow) for s in SETTINGS[1:]),
    ],
)
def test_composition_equals_the_full_mask_on_real_weights(smol, settings):
    assert largest_difference(smol.draft, real_layout(smol), **settings) < 1e-4


@pytest.mark.coder
@pytest.mark.parametrize("settings", SETTINGS)
def test_composition_equals_the_full_mask_on_the_coder_draft(coder, settings):
    assert largest_difference(coder.draft, real_layout(coder), **settings) < 1e-4


@pytest.mark.parametrize("switch", ["suffix_masking", "document_masking", "rebased"])
def test_every_switch_makes_a_difference_that_the_comparison_would_see(switch):
    model, layout = tiny_model(0, layers=3), tiny_layout()
    base = {"suffix_masking": True, "document_masking": True, "rebased": False}
    one = by_full_mask(model, layout, **base)
    other = by_full_mask(model, layout, **{**base, switch: not base[switch]})
    assert max(float((one[n] - other[n]).abs().max()) for n in ("summary", "tags")) > 1e-2


def test_a_chat_tail_that_sees_the_suffix_leaks_it_to_the_summary():
    model, layout = tiny_model(0, layers=3), tiny_layout()
    mask = {"suffix_masking": True, "document_masking": False, "rebased": True}
    masked = by_full_mask(model, layout, **mask)
    without = Layout(tuple(s for s in layout.segments if s[0] != "suffix"))
    clean = by_full_mask(model, without, **mask)
    assert float((masked["summary"] - clean["summary"]).abs().max()) < 1e-4
    visible = by_full_mask(model, layout, **{**mask, "suffix_masking": False})
    assert float((visible["tail"] - clean["tail"]).abs().max()) > 1e-2
