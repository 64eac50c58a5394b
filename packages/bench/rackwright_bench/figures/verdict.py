"""The result of a comparison of variants, in one sentence: which of them wins where, by how much, how sure. Pure.

By tokens of answers a second, in pairs of rounds. Cells of one verdict that are all those from a concurrency on, or up
to one, are listed by it, as the guide on EAGLE-3 concludes: it pays from moderate concurrency on, and costs at one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rackwright_bench.figures.figures import Measured
from rackwright_bench.figures.rounds import Estimate, in_pairs, over

WINS, COSTS, EVEN, OPEN = "wins", "costs", "even", "open"
NARROW = 2.0
"""Highest by lowest of an interval that holds 1: of a wider one nothing can be said, not even that they are alike."""


@dataclass(frozen=True)
class Share:
    """The other variant's share of the first one's tokens a second, in one cell."""

    cell: str
    concurrency: int
    ratio: Estimate
    by_round: tuple[float, ...]

    @property
    def verdict(self) -> str:
        """Return the verdict of the whole interval: the other wins, or costs, or nothing is said."""
        if not self.ratio.is_bounded:
            return OPEN
        if self.ratio.low <= 1 <= self.ratio.high:
            return EVEN if self.ratio.high / self.ratio.low <= NARROW else OPEN
        return WINS if self.ratio.value > 1 else COSTS


def shares(
    one: Mapping[str, Sequence[Measured]], other: Mapping[str, Sequence[Measured]], concurrency: Mapping[str, int]
) -> list[Share]:
    """Every cell of which both have rounds without a failed request. concurrency: by cell."""
    found = []
    for cell, at_once in concurrency.items():
        pairs = [
            pair
            for pair in zip(one.get(cell, ()), other.get(cell, ()), strict=False)
            if all(measured.has_figures for measured in pair)
        ]
        if pairs:
            ones, others = [pair[0].output_rate for pair in pairs], [pair[1].output_rate for pair in pairs]
            by_round = tuple(b / a for a, b in zip(ones, others, strict=True))
            found.append(Share(cell, at_once, in_pairs(ones, others), by_round))
    return found


def widest(found: Iterable[Share]) -> float:
    """Return the width of the widest interval; infinite of nothing."""
    return max((share.ratio.width for share in found), default=math.inf)


def verdict(name: str, against: str, found: Sequence[Share]) -> str:
    """Return the sentence. name: of the variant whose shares these are; against: of the first one."""
    if not found:
        return f"{name} against {against}: no cell has figures of both"
    parts = [part for kind in (WINS, COSTS, EVEN, OPEN) for part in _of_kind(kind, found)]
    text = f"{name} {', and '.join(parts)}"
    return f"{text} (against {against}, tokens a second, 95 % intervals over {_rounds(found)})"


def _rounds(found: Sequence[Share]) -> str:
    counts = sorted({len(share.by_round) for share in found})
    return f"{counts[0]} rounds" if counts[0] != 1 else "1 round, which has none"


def _of_kind(kind: str, found: Sequence[Share]) -> Iterator[str]:
    rows = [share for share in found if share.verdict == kind]
    if not rows:
        return
    where, ratio = range_of(rows, found), _together(rows)
    if kind == WINS:
        yield f"wins {where} by {ratio.value:.2f}x ({ratio.low:.2f} to {ratio.high:.2f})"
    elif kind == COSTS:
        low, value, high = ((1 - share) * 100 for share in (ratio.high, ratio.value, ratio.low))
        yield f"costs {value:.0f} % {where} ({low:.0f} to {high:.0f} %)"
    elif kind == EVEN:
        yield f"shows no difference {where} ({ratio.low:.2f}x to {ratio.high:.2f}x)"
    else:
        yield f"cannot be judged {where} ({_seen(rows)}): more rounds would tell"


def _seen(rows: Sequence[Share]) -> str:
    """Return what was measured of cells whose intervals say nothing."""
    values = sorted(share.ratio.value for share in rows)
    measured = f"{values[0]:.2f}x" if len(values) == 1 else f"{values[0]:.2f}x to {values[-1]:.2f}x"
    bounds = [share.ratio for share in rows if share.ratio.is_bounded]
    if not bounds:
        return measured
    low, high = min(one.low for one in bounds), max(one.high for one in bounds)
    return f"{measured}, anywhere from {low:.2f}x to {high:.2f}x"


def _together(rows: Sequence[Share]) -> Estimate:
    """Of one cell its own; of several, their mean, round by round, in an interval that holds each one's value."""
    if len(rows) == 1:
        return rows[0].ratio
    by_round = zip(*(share.by_round for share in rows), strict=False)
    found = over([over(values).value for values in by_round])
    values = [share.ratio.value for share in rows]
    return Estimate(found.value, min(found.low, *values), max(found.high, *values)) if found.is_bounded else found


def range_of(rows: Sequence[Share], found: Sequence[Share]) -> str:
    """Return the range of these cells among all, by their concurrency where that names them."""
    levels, others = {row.concurrency for row in rows}, {row.concurrency for row in found if row not in rows}
    if not others:
        return "everywhere"
    if levels & others:
        return f"in {', '.join(row.cell for row in rows)}"
    if len(levels) == 1 and not _is_end(max(levels), others):
        return f"at concurrency {max(levels)}"
    if min(levels) > max(others):
        return f"at concurrency >= {min(levels)}"
    if max(levels) < min(others):
        return "at concurrency 1" if levels == {1} else f"at concurrency <= {max(levels)}"
    return f"at concurrency {', '.join(map(str, sorted(levels)))}"


def _is_end(level: int, others: set[int]) -> bool:
    return level > max(others) or level < min(others)
