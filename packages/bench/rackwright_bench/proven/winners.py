"""The variant of a comparison that is proven to be the one to take, cell by cell. Pure.

Proven is what a whole 95 % interval says: that a variant is faster than the first one, or that all others are slower. A
cell beside which other clients were answered, or in which a GPU was slowed, proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rackwright_bench.figures.figures import Measured
from rackwright_bench.figures.rounds import Estimate
from rackwright_bench.figures.verdict import COSTS, WINS, Share, shares

Rounds = Mapping[str, Mapping[str, Sequence[Measured]]]
"""The rounds of each cell by its name, by variant; the first variant is what the others are compared with."""


@dataclass(frozen=True)
class Winner:
    """The variant that a cell proves, and its share of another one's tokens a second, where both have figures."""

    variant: str
    against: str = ""
    ratio: Estimate | None = None


def winners(found: Rounds, concurrency: Mapping[str, int]) -> dict[str, Winner]:
    """Return the winner of each cell that proves one. concurrency: by cell, in their order."""
    first, *others = found
    by_variant = {name: _by_cell(shares(found[first], found[name], concurrency)) for name in others}
    judged = {cell: _winner(first, _rows(by_variant, cell), found, cell) for cell in concurrency}
    return {cell: one for cell, one in judged.items() if one is not None}


def _by_cell(found: Sequence[Share]) -> dict[str, Share]:
    return {share.cell: share for share in found}


def _rows(by_variant: Mapping[str, Mapping[str, Share]], cell: str) -> dict[str, Share]:
    return {name: rows[cell] for name, rows in by_variant.items() if cell in rows}


def _winner(first: str, rows: Mapping[str, Share], found: Rounds, cell: str) -> Winner | None:
    """Return the winner of one cell. rows: each other variant's share of the first one."""
    if not rows or any(one.marks for name in (first, *rows) for one in found[name].get(cell, ())):
        return None
    best = max(rows, key=lambda name: rows[name].ratio.value)
    faster = {name: row for name, row in rows.items() if row.verdict == WINS}
    if faster:
        best = max(faster, key=lambda name: faster[name].ratio.value)
        return Winner(best, first, faster[best].ratio)
    if all(row.verdict == COSTS for row in rows.values()):
        ratio = rows[best].ratio
        return Winner(first, best, Estimate(1 / ratio.value, 1 / ratio.high, 1 / ratio.low))
    return None
