"""The exact interval of a difference of two shares that were taken in pairs. Pure; Python's own library alone.

Of n pairs, `lost` went one way and `won` the other; both come from a trinomial with the shares p and q. The interval is
of d = p - q. A value of d is left out when what was seen, or more, has less than 2.5 % under it. More is by the score
statistic of T. Tango (Statistics in Medicine 17, 1998, p. 891); its probability is summed exactly, and taken at its
largest over the other unknown, q, as far as q itself is plausible: R. L. Berger and D. D. Boos (Journal of the American
Statistical Association 89, 1994, p. 1012). So at most 2.5 % of intervals begin above the true difference, for every n,
p and q; tests/unit/test_quality_interval.py sums that up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

LEVEL = 0.025
"""Probability that an end of the interval misses on its side: 95 % in all."""
IMPLAUSIBLE = 0.0005
"""Probability at which a value of the other unknown is not looked at; it is added to what is summed."""
GRID = 40
"""Values of the other unknown that are tried."""
NEGLIGIBLE = 1e-9
"""Probability below which a count is not summed."""
STEPS = 16
"""Halvings on the way to an end: to a hundredth of a point."""


@lru_cache(4096)
def lower_end(lost: int, won: int, pairs: int) -> float:
    """Return the lower end of the interval of the share lost less the share won."""
    low, high = -1.0, (lost - won) / pairs
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if _explains(middle, lost, won, pairs) else (middle, high)
    return low


@lru_cache(4096)
def is_above(lost: int, won: int, pairs: int, difference: float) -> bool:
    """Return True if the lower end is above a difference."""
    return lost - won > pairs * difference and not _explains(difference, lost, won, pairs)


def least_lost(won: int, pairs: int, difference: float) -> int | None:
    """Return the fewest lost pairs, beside those won, whose lower end is above a difference; None without any."""
    low, high = won, pairs - won
    if not is_above(high, won, pairs, difference):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_above(middle, won, pairs, difference) else (middle, high)
    return high


def _explains(difference: float, lost: int, won: int, pairs: int) -> bool:
    """Return True if what was seen, or more, is not too rare under a difference, by some value of the other."""
    shares = list(_plausible(won, pairs, difference))
    least = score(lost, won, pairs, difference)
    limits = _limits(least, pairs, difference, min(pairs, _range(pairs, shares[-1], pairs + 1).stop))
    return any(_tail(limits, pairs, q + difference, q) + IMPLAUSIBLE >= LEVEL for q in shares)


def _plausible(won: int, pairs: int, difference: float) -> Iterator[float]:
    """Yield values of q that the pairs won, and the difference, allow; closer together near 0."""
    low, high = max(0.0, -difference), (1 - difference) / 2
    low = max(low, min(_at_least_share(won, pairs, IMPLAUSIBLE / 2), high))
    high = min(high, max(1 - _at_least_share(pairs - won, pairs, IMPLAUSIBLE / 2), low))
    for at in range(GRID + 1):
        yield (math.sqrt(low) + (math.sqrt(high) - math.sqrt(low)) * at / GRID) ** 2


def score(lost: int, won: int, pairs: int, difference: float) -> float:
    """Return how far what was seen is above a difference, in standard errors under that difference (Tango)."""
    a = 2 * pairs
    b = -lost - won + (2 * pairs - lost + won) * difference
    c = -won * difference * (1 - difference)
    q = (math.sqrt(max(b * b - 4 * a * c, 0.0)) - b) / (2 * a)
    variance = pairs * (2 * q + difference * (1 - difference))
    above = lost - won - pairs * difference
    if variance <= 0:
        return math.copysign(math.inf, above) if abs(above) > NEGLIGIBLE else 0.0
    return above / math.sqrt(variance)


def _limits(least: float, pairs: int, difference: float, most_won: int) -> list[int]:
    """Return, for each count of won pairs, the fewest lost ones whose score is at least so high."""
    limits, lost = [], 0
    for won in range(most_won + 1):
        # The score grows with the lost and falls with the won, so the limit only moves up.
        while lost <= pairs - won and score(lost, won, pairs, difference) < least - NEGLIGIBLE:
            lost += 1
        limits.append(lost)
    return limits


def _tail(limits: list[int], pairs: int, p: float, q: float) -> float:
    """Return the probability of a count of lost pairs at or above the limit of the count of won ones."""
    return sum(
        _exactly(won, pairs, q) * _at_least(limits[won], pairs - won, min(p / (1 - q), 1.0) if q < 1 else 0.0)
        for won in _range(pairs, q, len(limits))
    )


def _range(pairs: int, q: float, end: int) -> range:
    """Return the counts that are not negligible: eight standard deviations on either side, and never fewer than 20."""
    reach = 8 * math.sqrt(pairs * q * (1 - q)) + 20
    return range(max(0, int(pairs * q - reach)), min(end, int(pairs * q + reach) + 1))


def _exactly(count: int, trials: int, share: float) -> float:
    """Return a binomial probability."""
    if count < 0 or count > trials:
        return 0.0
    if share <= 0 or share >= 1:
        return float(count == (0 if share <= 0 else trials))
    ways = math.lgamma(trials + 1) - math.lgamma(count + 1) - math.lgamma(trials - count + 1)
    return math.exp(ways + count * math.log(share) + (trials - count) * math.log1p(-share))


def _at_least(count: int, trials: int, share: float) -> float:
    """Return the probability of so many or more, summed away from the mean, so that terms shrink."""
    if count <= 0:
        return 1.0
    if share >= 1:
        return float(count <= trials)
    if count <= trials * share:
        return 1 - _at_least(trials - count + 1, trials, 1 - share)
    term = total = _exactly(count, trials, share)
    odds = share / (1 - share)
    while count < trials and term > total * NEGLIGIBLE:
        term *= (trials - count) / (count + 1) * odds
        count += 1
        total += term
    return total


def _at_least_share(count: int, trials: int, probability: float) -> float:
    """Return the share below which so many or more have less than a probability (Clopper and Pearson)."""
    low, high = 0.0, count / trials
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _at_least(count, trials, middle) < probability else (low, middle)
    return low
