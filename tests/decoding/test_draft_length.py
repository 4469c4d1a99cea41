"""Which γ pays: the adaptive choice against the arithmetic written out."""

from __future__ import annotations

import pytest

from sidecar_core.decoding.draft_length import Adaptive, Fixed, Round, expected_tokens


def after(acceptance: float, draft: float, target: float, per_row: float) -> int:
    """The γ chosen behind many rounds of those costs."""
    length = Adaptive(4)
    for drafted in [2, 4, 6] * 20:
        accepted = round(acceptance * drafted)
        length.observe(
            Round(drafted, drafted, accepted, drafted * draft, target + per_row * (drafted + 1))
        )
    return length.choose()


def test_a_fixed_length_stays_what_it_is():
    length = Fixed(4)
    length.observe(Round(4, 4, 0, 1.0, 1.0))
    assert length.choose() == 4


def test_expected_tokens_is_the_closed_form():
    assert expected_tokens(0.7, 4) == pytest.approx((1 - 0.7**5) / (1 - 0.7))
    assert expected_tokens(1.0, 4) == 5
    assert expected_tokens(0.0, 4) == 1


def test_the_better_the_draft_the_longer_the_block():
    assert after(0.95, 1, 10, 0) > after(0.6, 1, 10, 0) > after(0.2, 1, 10, 0)


def test_dear_draft_passes_make_short_blocks():
    assert after(0.8, 8, 10, 0) < after(0.8, 1, 10, 0)


def test_dear_rows_in_the_target_pass_make_short_blocks():
    assert after(0.8, 1, 10, 5) < after(0.8, 1, 10, 0)


def test_the_choice_is_the_best_of_all_lengths_for_the_measured_costs():
    chosen = after(0.5, 2, 20, 1)
    recent_accepted, recent_judged = 2 + 4 * (1 + 2 + 3), 3 + 4 * (2 + 4 + 6)
    a = recent_accepted / recent_judged
    best = max(range(1, 13), key=lambda g: expected_tokens(a, g) / (2 * g + 20 + (g + 1)))
    assert chosen == best


def test_the_first_rounds_try_different_lengths():
    length = Adaptive(4)
    tried = []
    for _ in range(3):
        tried.append(length.choose())
        length.observe(Round(tried[-1], tried[-1], 1, 0.1, 0.1))
    assert tried == [4, 2, 6]


def test_rounds_that_take_no_measurable_time_still_give_a_length():
    length = Adaptive(4)
    for _ in range(5):
        length.observe(Round(4, 4, 2, 0.0, 0.0))
    assert 1 <= length.choose() <= 12
