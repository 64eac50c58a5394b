"""The exact interval of a median: two of the values themselves, whatever their distribution. Pure.

Each value is above the median as often as below it, so how many are below is a fair coin's count. The k-th smallest of
n is above the median when fewer than k fell below it. Nothing is assumed but that values do not depend on each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

LEVEL = 0.0125
"""Probability that an end misses on its side: two figures of a release are judged, 2.5 % together."""


def rank_of_end(number: int, level: float = LEVEL) -> int:
    """Return which of so many values, counted from an end, is the end of the interval; 0 where too few have none."""
    below, rank = 0.0, 0
    while rank <= number // 2:
        below += math.comb(number, rank) / 2**number
        if below > level:
            break
        rank += 1
    return rank


def fewest_values(level: float = LEVEL) -> int:
    """Return how many values there must be for an interval."""
    return math.ceil(math.log2(1 / level))


def median_interval(values: Sequence[float], level: float = LEVEL) -> tuple[float, float, float]:
    """Return the median and both ends of its interval; ends of 0 and infinity where values are too few for any.

    values: positive, such as ratios.
    """
    if not values:
        return 1.0, 0.0, math.inf
    ordered, rank = sorted(values), rank_of_end(len(values), level)
    if not rank:
        return median(ordered), 0.0, math.inf
    return median(ordered), ordered[rank - 1], ordered[-rank]
