"""The exact interval of paired shares: its promise summed over every outcome, and the shape that it must have."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackwright.quality.interval import is_above, least_lost, lower_end


def trinomial(lost: int, won: int, pairs: int, p: float, q: float) -> float:
    """Return the probability of one outcome, by another way than the product's."""
    ways = math.comb(pairs, lost) * math.comb(pairs - lost, won)
    return float(
        ways * Fraction(p) ** lost * Fraction(q) ** won * (1 - Fraction(p) - Fraction(q)) ** (pairs - lost - won)
    )


@pytest.mark.parametrize("difference", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("pairs", [10, 24])
def test_no_true_difference_is_overstated_more_often_than_promised(pairs: int, difference: float) -> None:
    limits = {won: least_lost(won, pairs, difference) for won in range(pairs)}
    above = [
        (lost, won) for won, least in limits.items() if least is not None for lost in range(least, pairs - won + 1)
    ]
    shares = [(1 - difference) / 2 * (at / 30) ** 2 for at in range(31)]
    wrong = [sum(trinomial(lost, won, pairs, q + difference, q) for lost, won in above) for q in shares]
    assert max(wrong) <= 0.025
    assert max(wrong) > 0.008, "so few are wrong that it shows less than it could"


@pytest.mark.parametrize(("pairs", "difference"), [(30, 0.0), (30, 0.02)])
def test_one_more_lost_answer_never_makes_a_release_look_better(pairs: int, difference: float) -> None:
    for won in range(8):
        verdicts = [is_above(lost, won, pairs, difference) for lost in range(pairs - won + 1)]
        assert verdicts == sorted(verdicts)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_the_interval_holds_what_was_seen_and_agrees_with_the_verdict(data: st.DataObject) -> None:
    pairs = data.draw(st.integers(1, 60))
    lost = data.draw(st.integers(0, pairs))
    won = data.draw(st.integers(0, pairs - lost))
    low, high = lower_end(lost, won, pairs), -lower_end(won, lost, pairs)
    assert -1 <= low <= (lost - won) / pairs <= high <= 1
    for difference in (0.0, 0.02):
        if abs(low - difference) > 0.001:
            assert is_above(lost, won, pairs, difference) == (low > difference)


def test_of_many_pairs_it_is_near_the_normal_approximation() -> None:
    reach = 1.96 * math.sqrt(0.15 - 0.05**2) / 20
    assert lower_end(40, 20, 400) == pytest.approx(0.05 - reach, abs=0.004)
    assert -lower_end(20, 40, 400) == pytest.approx(0.05 + reach, abs=0.004)


def test_the_fewest_lost_that_show_are_just_enough() -> None:
    for won, difference in product((0, 2, 5), (0.0, 0.02)):
        least = least_lost(won, 50, difference)
        assert least is not None
        assert is_above(least, won, 50, difference)
        assert not is_above(least - 1, won, 50, difference)


def test_one_pair_shows_nothing() -> None:
    assert least_lost(0, 1, 0) is None
