"""When a block ends: the rule against the arithmetic written out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from sidecar_core.decoding.draft_length import (
    BASE_ROUNDS,
    MOST,
    RISES,
    TRIAL,
    WEIGHT,
    Auto,
    Fixed,
    expected_tokens,
)
from sidecar_core.models.kernels.calibration import Calibration


def costs(base: float, per_row: float) -> Calibration:
    """A machine whose pass of n rows takes base + n * per_row seconds."""
    rows = (1, 2, 4, 8)
    return Calibration(rows, tuple(base + n * per_row for n in rows))


def auto(draft: float = 0.3, per_row: float = 0.05) -> Auto:
    return Auto(costs(1.0, per_row), costs(draft, 0.0))


def length(rule: Auto, q: float) -> int:
    """Tokens of a block whose draft is always that sure."""
    drafted: list[float] = []
    while rule.end(drafted) is None:
        drafted.append(q)
    return len(drafted)


def after(rule: Auto, blocks: Sequence[tuple[list[float], int, int]]) -> Auto:
    for block in blocks:
        rule.observe(*block)
    return rule


def test_a_fixed_length_stays_what_it_is():
    fixed = Fixed(2)
    fixed.observe([0.1, 0.1], 1, 0)
    assert [fixed.end([0.5] * n) for n in range(3)] == [None, None, "gamma"]
    assert fixed.most(room=1) == 1


def test_expected_tokens_is_the_closed_form():
    assert expected_tokens(0.7, 4) == pytest.approx((1 - 0.7**5) / (1 - 0.7))
    assert expected_tokens(1.0, 4) == 5
    assert expected_tokens(0.0, 4) == 1


def test_the_surer_the_draft_the_longer_the_block():
    lengths = [length(auto(), q) for q in (0.05, 0.5, 0.95)]
    assert lengths == sorted(lengths)
    assert lengths[0] == 1
    assert lengths[-1] == MOST


def test_dear_draft_passes_and_dear_rows_make_short_blocks():
    assert length(auto(draft=0.6), 0.85) < length(auto(draft=0.1), 0.85)
    assert length(auto(per_row=0.4), 0.85) < length(auto(per_row=0.0), 0.85)


def test_nothing_is_drafted_where_it_cannot_pay():
    assert auto(draft=1.0).end([]) == "cost"
    assert auto(draft=0.3, per_row=3.0).end([]) == "cost"


def test_one_more_token_is_drafted_just_when_it_brings_more_than_it_costs():
    rule = auto()
    q = 0.85
    reach, drafted = 1.0, 0
    price = 1 / 1.05  # plain decoding brings one token in the pass of one row
    while reach * 5.6 / 8 > (0.3 + 0.05) * price and drafted < MOST:
        reach *= RISES[8]
        drafted += 1
    assert length(rule, q) == drafted
    assert 1 < drafted < MOST


def test_a_draft_that_is_always_rejected_is_given_up_and_one_that_never_is_gets_long_blocks():
    bad = after(auto(), [([0.95], 1, 0)] * 40)
    good = after(auto(), [([0.35] * 4, 4, 4)] * 40)
    assert bad.end([]) == "cost"
    assert length(good, 0.35) > length(auto(), 0.35)


def test_what_was_learned_of_sure_tokens_says_nothing_of_doubtful_ones():
    learned = after(auto(), [([0.95], 1, 0)] * 40)
    assert learned.rises[9] == (WEIGHT * RISES[9], WEIGHT + 40)
    assert learned.rises[2] == (WEIGHT * RISES[2], WEIGHT)


def test_tokens_that_were_not_judged_teach_nothing():
    rule = after(auto(), [([0.95, 0.15, 0.55], 1, 0)])
    assert rule.rises[1] == (WEIGHT * RISES[1], WEIGHT)
    assert rule.rises[5] == (WEIGHT * RISES[5], WEIGHT)


def test_after_many_rounds_without_a_draft_one_is_tried():
    rule = auto(draft=1.0)
    rule.rounds = max(BASE_ROUNDS)
    rule.observe([0.9], 1, 0)
    for _ in range(TRIAL):
        assert rule.end([]) == "cost"
        rule.observe([], 0, 0)
    assert rule.end([]) is None
    assert rule.end([0.9]) == "cost"
    rule.observe([0.9], 1, 0)
    assert rule.end([]) == "cost"


def test_the_rounds_that_measure_plain_decoding_draft_nothing():
    rule = auto()
    drafted = []
    for _ in range(40):
        drafted.append(length(rule, 0.95))
        rule.observe([0.95] * drafted[-1], drafted[-1], drafted[-1])
    assert [n for n, count in enumerate(drafted) if count == 0] == [1, 2, 33, 34]
    assert not any(rule.extra_base(n) for n in range(40))
    assert [n for n in range(40) if Fixed(2).extra_base(n)] == [1, 2, 33, 34]
    assert not any(Fixed(0).extra_base(n) for n in range(40))


def test_no_block_is_longer_than_the_limit_or_the_room():
    assert auto().most(room=3) == 3
    assert auto().most(room=100) == MOST
    assert auto(draft=1e-9, per_row=0.0).end([0.99] * MOST) == "gamma"


@pytest.mark.parametrize("rows", [1, 2, 3, 6, 8, 12])
def test_passes_between_those_timed_lie_on_a_line(rows):
    assert math.isclose(costs(1.0, 0.25).pass_seconds(rows), 1.0 + 0.25 * rows)
