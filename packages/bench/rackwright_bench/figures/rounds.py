"""Rounds of the same cells: how many are measured, what they say together, how sure that is. Pure but for a clock.

A run's own spread does not know that the machine was busier in it than in the next one. Rounds do: with two or more the
interval is Student's, over the rounds' figures on a logarithmic scale. What is compared within a round is compared in
pairs, so that what changes from round to round falls out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from rackwright_bench.figures.figures import Drafting, Measured, Request

STUDENT = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Student's t for 95 %, of 1 to 10 degrees of freedom; of more it is a little less, and the tenth is taken."""
FEWEST = 3
"""Rounds before which nothing is narrow enough."""
TINY = 1e-9
"""Stands for a figure of nothing, which has no logarithm."""


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval; no interval where there was too little for one."""

    value: float
    low: float
    high: float

    @property
    def is_bounded(self) -> bool:
        """True if it has an interval."""
        return self.low > 0 and math.isfinite(self.high)

    @property
    def width(self) -> float:
        """Half of its interval as a share of the figure; infinite without one."""
        return (self.high - self.low) / 2 / self.value if self.is_bounded and self.value else math.inf


@dataclass(frozen=True)
class Limits:
    """The limits of the rounds."""

    most: int = 1
    narrow: float = 0.05
    """Half an interval, as a share of its figure, that is narrow enough."""
    seconds: float = math.inf
    """In which no round may begin that would not end, as far as one can tell, within them."""


def round_numbers(
    limits: Limits, width: Callable[[], float], clock: Callable[[], float] = time.monotonic
) -> Iterator[int]:
    """Yield the numbers of the rounds, from 1. width: of the widest interval yet."""
    began = clock()
    for number in range(1, limits.most + 1):
        yield number
        spent = clock() - began
        if spent + spent / number > limits.seconds:
            return
        if number >= FEWEST and width() <= limits.narrow:
            return


def over(values: Sequence[float]) -> Estimate:
    """Return the geometric mean of a figure's rounds, with its interval; none of a single round."""
    logs = [math.log(max(value, TINY)) for value in values]
    middle = fmean(logs)
    if len(logs) < 2:
        return Estimate(math.exp(middle), 0.0, math.inf)
    around = STUDENT[min(len(logs) - 1, len(STUDENT)) - 1] * stdev(logs) / math.sqrt(len(logs))
    return Estimate(math.exp(middle), math.exp(middle - around), math.exp(middle + around))


def in_pairs(ones: Sequence[float], others: Sequence[float]) -> Estimate:
    """Return the ratio of `others` to `ones`, from pairs of rounds."""
    return over([max(other, TINY) / max(one, TINY) for one, other in zip(ones, others, strict=False)])


def pooled(rounds: Sequence[Measured]) -> Measured:
    """All rounds of a cell as one, which keeps them; at least one."""
    if len(rounds) == 1:
        return rounds[0]
    errors = dict.fromkeys(text for one in rounds for text in one.errors)
    goods = [one.goodput for one in rounds if one.goodput is not None]
    return replace(
        rounds[0],
        requests=tuple(_in_turn(rounds)),
        seconds=sum(one.seconds for one in rounds),
        input_tokens=fmean(one.input_tokens for one in rounds),
        short=sum(one.short for one in rounds),
        goodput=fmean(goods) if goods else None,
        failed=sum(one.failed for one in rounds),
        errors=tuple(errors),
        drafting=_drafting([one.drafting for one in rounds]),
        marks=tuple(dict.fromkeys(text for one in rounds for text in one.marks)),
        gpu={
            key: fmean(one.gpu[key] for one in rounds) for key in rounds[0].gpu if all(key in one.gpu for one in rounds)
        },
        rounds=tuple(rounds),
    )


def _in_turn(rounds: Sequence[Measured]) -> Iterator[Request]:
    before = 0.0
    for one in rounds:
        yield from (replace(request, ended=request.ended + before) for request in one.requests)
        before += one.seconds


def _drafting(found: Sequence[Drafting]) -> Drafting:
    """Its mean: each round has sent as much as the others. Not measurable where one of them was not."""
    unknown = next((one for one in found if one.tokens_a_step is None and one.accepted is None), None)
    if unknown is not None:
        return unknown
    shares = [one.accepted for one in found if one.accepted is not None]
    places = zip(*(one.by_position for one in found), strict=False)
    steps = [one.tokens_a_step for one in found if one.tokens_a_step is not None]
    mean_steps = fmean(steps) if len(steps) == len(found) else None
    return Drafting(mean_steps, fmean(shares) if shares else None, tuple(map(fmean, places)))
