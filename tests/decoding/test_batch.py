"""Samples written side by side over shared columns are what each would be alone."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from sidecar_core.decoding.batch import BatchWriter, Sample
from sidecar_core.decoding.cache import SegmentedCache
from sidecar_core.decoding.passes import forward
from sidecar_core.decoding.sampling import Sampler
from sidecar_core.decoding.tagging import Opening
from sidecar_core.tasks import SidecarTask
from tests.tiny_pair import tiny_engine

LETTERS = SidecarTask(
    name="letters",
    label="Letters",
    suffix=" Then letters.",
    cue="\n\nLetters:",
    parse=tuple,
    is_done=lambda raw: "e" in raw,
    max_tokens=24,
)
"""Ends at the first "e", so that samples end at different lengths."""

ENGINE = tiny_engine()
PROMPT = ENGINE.prompts.article("The old quarter voted on Tuesday.").ids


def opening() -> Opening:
    cache = SegmentedCache()
    forward(ENGINE.pair.draft, cache, PROMPT, 0, segment="head", rows=0)
    return Opening(cache, cache.length + 3, 0)


def writer(temperature: float, task: SidecarTask = LETTERS) -> BatchWriter:
    return BatchWriter(
        model=ENGINE.pair.draft,
        tokenizer=ENGINE.pair.tokenizer,
        task=task,
        cue=ENGINE.prompts.plain(task.cue),
        sampler=Sampler(temperature),
        vocabulary=ENGINE.pair.vocab_size,
        stop_ids=ENGINE.stop_ids,
    )


def written(samples: int, temperature: float, task: SidecarTask = LETTERS) -> list[Sample]:
    passes = writer(temperature, task).write(opening(), samples, seed=7)
    return sorted((s for ended in passes for s in ended), key=lambda s: s.row)


def plainly(row: int, samples: int, temperature: float) -> list[int]:
    """Row `row` of a batch of `samples`, decoded alone by full passes without a cache."""
    source = torch.Generator().manual_seed(7)
    seeds = [int(torch.randint(2**31, (), generator=source)) for _ in range(samples)]
    generator = torch.Generator().manual_seed(seeds[row])
    tokens = [*PROMPT, *ENGINE.prompts.plain(LETTERS.cue)]
    places = [*range(len(PROMPT)), *range(len(PROMPT) + 3, len(tokens) + 3)]
    made: list[int] = []
    while len(made) < LETTERS.max_tokens:
        positions = [*places, *range(places[-1] + 1, places[-1] + 1 + len(made))]
        logits = ENGINE.pair.draft.network(
            input_ids=torch.tensor([tokens + made]), position_ids=torch.tensor([positions])
        ).logits[0, -1]
        token = Sampler(temperature).choose(logits.float(), generator)
        if token in ENGINE.stop_ids:
            break
        made.append(token)
        if LETTERS.is_done(ENGINE.pair.tokenizer.decode(made)):
            break
    return made


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_a_batch_of_samples_is_the_samples_decoded_one_by_one(temperature):
    batch = written(6, temperature)
    assert [s.row for s in batch] == list(range(6))
    assert [list(s.ids) for s in batch] == [plainly(row, 6, temperature) for row in range(6)]


def test_samples_differ_and_end_at_different_lengths():
    batch = written(6, 0.7)
    assert len({s.ids for s in batch}) == 6
    assert len({len(s.ids) for s in batch}) > 2


def test_fewer_samples_are_the_first_of_more():
    assert written(3, 0.7) == written(6, 0.7)[:3]


def test_a_sample_that_is_done_takes_no_part_in_later_passes():
    opened = opening()
    shared = opened.cache.length + len(ENGINE.prompts.plain(LETTERS.cue))
    samples = [s for ended in writer(0.7).write(opened, 6, seed=7) for s in ended]
    # Nobody's last token is read: it adds no column.
    assert opened.cache.length - shared == sum(len(s.ids) - 1 for s in samples)
    assert dict(opened.cache.segments)["tags"] == opened.cache.length - shared


def test_samples_end_in_the_pass_that_ended_them():
    lengths = [
        (number, len(sample.ids))
        for number, ended in enumerate(writer(0.7).write(opening(), 6, seed=7), 1)
        for sample in ended
    ]
    assert all(number == length for number, length in lengths)


def test_an_end_of_text_is_no_part_of_a_sample():
    first = written(1, 0.0)[0].ids[0]
    ends = dataclasses.replace(writer(0.0), stop_ids=frozenset([first]))
    assert [s for e in ends.write(opening(), 2, seed=0) for s in e] == [
        Sample(0, (), "", ()),
        Sample(1, (), "", ()),
    ]


def test_a_sample_of_more_than_the_longest_length_is_cut():
    endless = dataclasses.replace(LETTERS, is_done=lambda raw: False, max_tokens=3)
    assert {len(s.ids) for s in written(4, 0.7, endless)} == {3}
