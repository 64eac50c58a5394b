"""Two releases compared in pairs: sentences, the rule of refusal, and replays of equal releases."""

from __future__ import annotations

import random

import pytest

from rackwright.quality.pairs import Comparison, compare, smallest_refused


def compared(lost: int, won: int, questions: int, worse_by: float = 2) -> Comparison:
    """Return a comparison of so many answers, all others right in both."""
    before = {f"q{n}": not lost <= n < lost + won for n in range(questions)}
    now = {f"q{n}": n >= lost for n in range(questions)}
    return compare(before, now, worse_by)


@pytest.mark.parametrize(
    ("lost", "won", "questions", "text"),
    [
        (8, 0, 200, "worse by 4 points (1.6 to 7.7)"),
        (0, 8, 200, "better by 4 points (1.6 to 7.7)"),
        (5, 5, 200, "no difference that 200 questions could show (4.5 points would be)"),
        (0, 0, 1, "no difference that 1 question could show (no difference would be)"),
        (0, 0, 0, "no difference that 0 questions could show (no difference would be)"),
    ],
)
def test_text_of_a_comparison(lost: int, won: int, questions: int, text: str) -> None:
    assert compared(lost, won, questions).sentence == text


def test_only_questions_that_both_were_asked_count() -> None:
    before = {"a": True, "b": True, "c": False, "wrong": False}
    found = compare(before, {"b": False, "c": True, "d": False, "wrong": False}, 2)
    assert (found.lost, found.won, found.questions) == (("b",), ("c",), 3)
    assert (found.right_before, found.right_now) == (1, 1)


def test_it_is_refused_by_the_better_end_alone() -> None:
    few, many = compared(6, 0, 100), compared(7, 0, 100)
    assert few.differs
    assert not few.worse
    assert many.worse
    assert many.interval[0] > 2
    assert many.smallest_refused == smallest_refused(100, 2) == 7


def test_one_in_ten_wrong_of_the_shipped_hundred_is_refused() -> None:
    assert compared(10, 0, 100).worse
    assert compared(10, 1, 100).worse


def test_what_would_be_shown_is_just_enough_to_be_shown() -> None:
    found = compared(3, 3, 100)
    assert found.smallest_shown is not None
    assert compared(3 + round(found.smallest_shown), 3, 100).differs
    assert not compared(3 + round(found.smallest_shown) - 1, 3, 100).differs


def replayed(times: int, questions: int, lost: float, won: float) -> int:
    """Return how many of so many releases are refused, when each answer is lost or won by chance."""
    dice = random.Random(43)
    refused = 0
    for _ in range(times):
        rolled = [dice.random() for _ in range(questions)]
        refused += compared(sum(r < lost for r in rolled), sum(lost <= r < lost + won for r in rolled), questions).worse
    return refused


def test_a_thousand_equal_releases_are_hardly_ever_refused() -> None:
    # Answers of one release to the same questions differ with what else is in the batch: 3 in 100 either way.
    assert replayed(1000, 100, 0.03, 0.03) <= 5


def test_a_thousand_releases_that_are_as_much_worse_as_allowed_keep_the_promise() -> None:
    # 2.5 % of a thousand are 25; one such set of replays in a thousand has more than 41.
    assert replayed(1000, 100, 0.04, 0.02) <= 41


def test_a_release_that_lost_one_answer_in_ten_is_found() -> None:
    assert replayed(200, 100, 0.12, 0.02) > 100
