"""The main job on the pair that is the default where the Hub is out of reach, fp32."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from sidecar_core.decoding.engine import Engine
from sidecar_core.report import RunReport
from sidecar_core.settings import RunSettings
from tests.decoding.test_engine import MODES

pytestmark = pytest.mark.coder

ARTICLE = """The regional rail operator said on Monday that night trains between the coast and the \
lake district will return in spring after a break of eleven years. Two trains a night, with forty \
beds each, are to leave at ten and arrive before breakfast. Tickets start at the price of a day \
seat, and bicycles travel free. Residents near the yards at Ostrand fear noise at night."""

SETTINGS = RunSettings(max_tokens=80, gamma=4)


@pytest.fixture(scope="module")
def reports(coder) -> list[RunReport]:
    """One run in each draft prompt mode; the first goes to its end."""
    engine = Engine(coder)
    lengths = [80, *[24] * (len(MODES) - 1)]
    return [
        RunReport.of(
            engine.stream(ARTICLE, dataclasses.replace(SETTINGS, max_tokens=length, **mode))
        )
        for mode, length in zip(MODES, lengths, strict=True)
    ]


def test_a_whole_run_gives_a_summary_alpha_and_tags_in_both_columns(reports):
    report = reports[0]
    assert report.summary.reason == "stop"
    assert 0.5 < report.alpha < 0.95
    assert "train" in report.text.lower()
    for tagger in ("sidecar", "standalone"):
        done = report.taggers[tagger].finished
        assert 1 <= len(done.tags) <= 5
        assert all(tag == tag.lower() and " " not in tag for tag in done.tags)
        assert done.kv_bytes > 0
        assert done.prefill_tokens > 0


def test_every_draft_prompt_gives_the_targets_own_greedy_text(coder, reports):
    engine = Engine(coder)
    prompt = engine.build_prompts(ARTICLE, SETTINGS).target.ids
    ids = torch.tensor([prompt])
    made = coder.target.network.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=24, pad_token_id=0
    )
    wanted = made[0, len(prompt) :].tolist()
    assert [report.ids[:24] for report in reports] == [wanted] * len(MODES)


def test_rebased_overlaps_equal_those_of_the_identical_prompt(reports):
    assert reports[2].overlaps == pytest.approx(reports[3].overlaps, abs=1e-4)


def test_an_unrelated_draft_prompt_collapses_alpha(reports):
    assert reports[4].alpha < reports[3].alpha - 0.1
