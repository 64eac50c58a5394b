"""Two runs of the same cells against each other: a ratio with its 95 % interval, and which of them is better. Pure.

A percentile's interval comes from its order statistics, a mean's from its standard error, a rate's from the rates of
ten parts of the cell (batch means), a ratio's from those of both, by recovering their variances on a logarithmic scale
(Zou and Donner, 2008). Of a cell with rounds, each figure's interval is the one over its rounds.
Nothing is drawn at random, so the same two runs always say the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, mean, stdev

from rackwright_bench.figures.figures import PERCENTILES, Measured, quantile
from rackwright_bench.figures.rounds import STUDENT, TINY, Estimate, over

PARTS = 10
"""Into which a cell's answers are parted, in the order in which they came."""
FEWEST = 8
"""Requests below which a cell says nothing of its spread."""
NORMAL = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True)
class Figure:
    """One figure of a cell: its name, and whether more of it is better."""

    name: str
    more_is_better: bool


FIGURES = (
    Figure("request_rate", True),
    Figure("output_rate", True),
    Figure("total_rate", True),
    Figure("ttft_mean", False),
    Figure("tpot_mean", False),
    *(Figure(f"{name}_p{percentile}", False) for name in ("ttft", "itl", "latency") for percentile in PERCENTILES),
)


@dataclass(frozen=True)
class Compared:
    """One figure of one cell in two runs: the other's share of the one's, 1 where they are equal."""

    cell: str
    figure: Figure
    ratio: Estimate

    @property
    def verdict(self) -> str:
        """`better`, `worse`, or `no difference shown`: of the other run."""
        if not self.ratio.is_bounded or self.ratio.low <= 1 <= self.ratio.high:
            return "no difference shown"
        return "better" if (self.ratio.value > 1) == self.figure.more_is_better else "worse"


def compared(one: Mapping[str, Measured], other: Mapping[str, Measured]) -> Iterator[Compared]:
    """Every figure of every cell that both have without a failed request."""
    for name, cell in one.items():
        if name in other and not (cell.failed or other[name].failed):
            for figure in FIGURES:
                ratio = ratio_of(estimate(cell, figure.name), estimate(other[name], figure.name))
                yield Compared(name, figure, ratio)


def estimate(cell: Measured, figure: str) -> Estimate:
    """Return a figure of a cell by its name in FIGURES; over its rounds where it has any."""
    if cell.rounds:
        return over([estimate(one, figure).value for one in cell.rounds])
    name, _, kind = figure.rpartition("_")
    if kind == "mean":
        return mean_of(cell.values(name))
    if kind != "rate":
        return percentile_of(cell.values(name), int(kind.removeprefix("p")) / 100)
    return rate_of(_amounts(cell, figure), [request.ended for request in cell.requests], cell.seconds)


def _amounts(cell: Measured, figure: str) -> list[float]:
    """Return what each request counts for in a rate: itself, or tokens."""
    if figure == "request_rate":
        return [1.0] * len(cell.requests)
    prompt = cell.input_tokens if figure == "total_rate" else 0.0
    return [request.tokens + prompt for request in cell.requests]


def mean_of(values: Sequence[float]) -> Estimate:
    """Return the mean, and its interval by the central limit theorem."""
    value = mean(values)
    if len(values) < FEWEST:
        return Estimate(value, 0.0, math.inf)
    around = NORMAL * stdev(values) / math.sqrt(len(values))
    return Estimate(value, max(value - around, 0.0), value + around)


def percentile_of(ordered: Sequence[float], share: float) -> Estimate:
    """Return a percentile, and the two values that hold the true one by their ranks alone (binomial, 95 %)."""
    value, count = quantile(ordered, share), len(ordered)
    around = NORMAL * math.sqrt(count * share * (1 - share))
    low, high = math.floor(count * share - around) - 1, math.ceil(count * share + around)
    if low < 0 or high >= count or count < FEWEST:
        return Estimate(value, 0.0, math.inf)
    return Estimate(value, min(value, ordered[low]), max(value, ordered[high]))


def rate_of(amounts: Sequence[float], ended: Sequence[float], seconds: float) -> Estimate:
    """Amounts a second, and its interval from the rates of the parts of the cell. ended: ascending."""
    value, size = sum(amounts) / seconds, len(amounts) // PARTS
    if size < 1 or len(amounts) < FEWEST:
        return Estimate(value, 0.0, math.inf)
    edges = [0.0, *(ended[part * size - 1] for part in range(1, PARTS + 1))]
    rates = [
        sum(amounts[part * size : (part + 1) * size]) / max(edges[part + 1] - edges[part], TINY)
        for part in range(PARTS)
    ]
    around = STUDENT[PARTS - 2] * stdev(rates) / math.sqrt(PARTS) * value / mean(rates)
    return Estimate(value, max(value - around, 0.0), value + around)


def ratio_of(one: Estimate, other: Estimate) -> Estimate:
    """Return the ratio of `other` to `one`."""
    a, b = (math.log(max(found.value, TINY)) for found in (other, one))
    ratio = math.exp(a - b)
    if not (one.is_bounded and other.is_bounded):
        return Estimate(ratio, 0.0, math.inf)
    below = math.hypot(a - math.log(max(other.low, TINY)), math.log(max(one.high, TINY)) - b)
    above = math.hypot(math.log(max(other.high, TINY)) - a, b - math.log(max(one.low, TINY)))
    return Estimate(ratio, math.exp(a - b - below), math.exp(a - b + above))


# -- in words


def sentences(found: Sequence[Compared], one: str, other: str) -> Iterator[str]:
    """Yield a sentence for each verdict that some cell has: the faster one by tokens of answers a second, and where."""
    rates = [row for row in found if row.figure.name == "output_rate"]
    for verdict, words in (("better", "is faster"), ("worse", "is slower")):
        rows = sorted((row for row in rates if row.verdict == verdict), key=lambda row: row.ratio.value)
        if rows:
            yield f"{other} {words} than {one} in {', '.join(map(_of_cell, rows))}"
    if even := [row.cell for row in rates if row.verdict not in ("better", "worse")]:
        yield f"no difference shown in {', '.join(even)}: more requests, or more rounds, would narrow it"


def _of_cell(row: Compared) -> str:
    return f"{row.cell} ({in_percent(row.ratio)})"


def in_percent(ratio: Estimate) -> str:
    """`+12.4 %, 95 % interval +9.1 to +15.9 %`."""
    text = f"{_signed(ratio.value)} %"
    return f"{text}, 95 % interval {_signed(ratio.low)} to {_signed(ratio.high)} %" if ratio.is_bounded else text


def _signed(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.1f}"
