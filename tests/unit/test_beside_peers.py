"""How fast a canary is beside its peers: the interval, the sentence, the looks, and replays of equal releases."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest

from rackwright.quality.beside import FEWEST, BesidePeers, HostPace, PacePair
from rackwright.quality.median_interval import LEVEL, fewest_values, median_interval, rank_of_end

PAIRS = 20


def beside(first: list[float], token: list[float], slower_by: float = 20, peers: int = 3) -> BesidePeers:
    """Return pairs with such ratios to peers that all take a tenth of a second."""
    names = [f"h{number}" for number in range(2, 2 + peers)]
    pairs = [
        PacePair(HostPace(one / 10, other / 10), {name: HostPace(0.1, 0.1) for name in names})
        for one, other in zip(first, token, strict=True)
    ]
    return BesidePeers(pairs, slower_by)


def about(middle: float, number: int = PAIRS) -> list[float]:
    """Return ratios on both sides of one, up to a tenth of it away."""
    return [middle * (0.95 + 0.1 * at / (number - 1)) for at in range(number)]


@pytest.mark.parametrize(
    ("first", "token", "text"),
    [
        (
            about(1.12),
            about(1 / 0.7),
            "12 % slower to the first token than its 3 peers (8.8 to 15 %), 30 % fewer tokens a second (28 to 32 %)",
        ),
        (
            about(0.8),
            about(0.8),
            "20 % faster to the first token than its 3 peers (18 to 22 %), 25 % more tokens a second (21 to 29 %)",
        ),
        (
            about(1.0),
            about(1.0),
            "no difference to the first token that 20 pairs could show (3 % would be), no difference in tokens a "
            "second that 20 pairs could show (2.9 % would be)",
        ),
    ],
)
def test_text_of_a_comparison(first: list[float], token: list[float], text: str) -> None:
    assert beside(first, token).sentence == text


def test_what_would_be_shown_is_just_enough_to_be_shown() -> None:
    found = beside(about(1.0), about(1.0))
    low = found.first.ends[1]
    assert beside([one / low * 1.001 for one in about(1.0)], about(1.0)).first.ends[1] > 1
    assert beside([one / low * 0.999 for one in about(1.0)], about(1.0)).first.ends[1] < 1


@pytest.mark.parametrize(("first", "token"), [(1.4, 1.0), (1.0, 1.45)])
def test_either_figure_refuses_by_its_better_end_alone(first: float, token: float) -> None:
    assert beside(about(first), about(token)).slower
    assert not beside(about(first), about(token), slower_by=40).slower
    few = [*about(1.0, 10), *about(3.0, 10)]
    assert not beside(few if first > 1 else about(1.0), few if token > 1 else about(1.0)).slower


def test_a_release_with_30_per_cent_fewer_tokens_a_second_is_refused_at_20_and_kept_at_35() -> None:
    slow = beside(about(1.0), about(1 / 0.7))
    assert slow.slower
    assert not beside(about(1.0), about(1 / 0.7), slower_by=35).slower


def test_some_windows_that_went_wrong_refuse_nothing() -> None:
    ratios = [*about(1.0, 16), 9.0, 9.0, 9.0, 9.0]
    assert not beside(ratios, ratios).slower


def test_too_few_pairs_are_not_judged() -> None:
    assert FEWEST == fewest_values() == 7
    few = beside(about(2.0, FEWEST - 1), about(2.0, FEWEST - 1))
    assert not few.is_judged
    assert not few.slower
    enough = beside(about(2.0, FEWEST), about(2.0, FEWEST))
    assert enough.is_judged
    assert enough.slower


def test_text_of_pairs_of_one_figure() -> None:
    assert not BesidePeers([], 20).is_judged
    pairs = [PacePair(HostPace(None, 0.2), {"h2": HostPace(0.1, 0.1)}) for _ in range(PAIRS)]
    found = BesidePeers(pairs, 20)
    assert found.slower
    assert found.sentence.startswith("time to the first token not measurable (0 pairs), 50 % fewer tokens a second")


def test_text_of_a_slow_peer_among_three_which_takes_no_part() -> None:
    peers = {"h2": HostPace(0.1, 0.1), "h3": HostPace(0.1, 0.1), "h4": HostPace(0.1, 0.3)}
    found = BesidePeers([PacePair(HostPace(0.1, 0.1), peers) for _ in range(PAIRS)], 20)
    assert not found.slower
    assert found.sentence.endswith("; its peers differ by up to 200 % among themselves")


@pytest.mark.parametrize("number", range(1, 60))
def test_an_end_of_the_interval_misses_no_more_often_than_it_says(number: int) -> None:
    rank = rank_of_end(number)
    assert (rank > 0) is (number >= fewest_values())
    miss = sum(math.comb(number, below) for below in range(rank)) / 2**number
    assert miss <= LEVEL
    if rank and rank < number // 2:
        assert miss + math.comb(number, rank) / 2**number > LEVEL


def test_the_interval_holds_the_median() -> None:
    rng = random.Random(4)
    for _ in range(200):
        values = [rng.lognormvariate(0, 1) for _ in range(rng.randint(1, 40))]
        middle, low, high = median_interval(values)
        assert low <= middle <= high


@pytest.mark.parametrize("noise", [0.05, 0.5])
@pytest.mark.parametrize("peers", [1, 3])
def test_releases_that_are_just_slow_enough_are_refused_as_seldom_as_promised(noise: float, peers: int) -> None:
    """Both of its figures have exactly the slowdown that is allowed; an equal one is refused less often still."""
    rng = random.Random(43)

    def host(*factors: float) -> HostPace:
        return HostPace(*(0.1 * factor * rng.lognormvariate(0, noise) for factor in factors))

    def refused(*factors: float) -> int:
        count = 0
        for _ in range(1000):
            pairs = [PacePair(host(*factors), {f"h{n}": host(1, 1) for n in range(peers)}) for _ in range(PAIRS)]
            count += BesidePeers(pairs, 20).slower
        return count

    assert refused(1.2, 1 / 0.8) <= 25
    assert refused(1.0, 1.0) <= (0 if noise == 0.05 else 5)


def test_the_interval_narrows_with_more_pairs() -> None:
    wide = [median_interval(about(1.0, number))[1] for number in (8, 20, 80)]
    assert all(one < other for one, other in pairwise(wide))
