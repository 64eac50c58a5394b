"""`--bound "ttft_p95 <= 500"`: what a variant must keep in each round of each cell to be taken. Pure.

A bound is a figure of a cell, any percentile of a latency among them, or `context`: tokens that the settings hold,
which is judged before anything runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rackwright.messages import SettingsError
from rackwright_bench.figures.compare import FIGURES, estimate
from rackwright_bench.figures.fail_if import COMPARE
from rackwright_bench.figures.figures import Measured
from rackwright_engines.nearest import nearest

FORM = re.compile(r"\s*(\w+)\s*(<=|>=|<|>)\s*(\d+(?:\.\d+)?)([kK]?)\s*\Z")
PERCENTILE = re.compile(r"(?:ttft|itl|latency)_p[1-9]\d?\Z")
CONTEXT = "context"
TOKENS = 1024
"""Tokens of one `k`, as in `advise`."""


@dataclass(frozen=True)
class Bound:
    """A condition that must hold."""

    text: str
    figure: str
    sign: str
    limit: float

    @property
    def is_context(self) -> bool:
        """True if settings alone decide it."""
        return self.figure == CONTEXT

    def keeps(self, value: float) -> bool:
        """Return True if a figure is within it."""
        return COMPARE[self.sign](value, self.limit)

    def worst(self, values: Iterable[float]) -> float:
        """Return the value that is nearest to breaking it, or breaks it most."""
        return max(values) if "<" in self.sign else min(values)


def bound_of(text: str) -> Bound:
    """Return what `--bound` says. Raises SettingsError with the form, and the nearest right name."""
    found = FORM.match(text)
    if found is None or (found[4] and found[1] != CONTEXT):
        raise SettingsError(
            f'--bound {text}: must be "FIGURE <= NUMBER", as "ttft_p95 <= 500" (ms) or "context >= 8k"; nothing was '
            "measured",
            code="RW1524",
        )
    if not is_figure(found[1]) and found[1] != CONTEXT:
        names = [*(figure.name for figure in FIGURES), "ttft_p95", CONTEXT]
        raise SettingsError(
            f"--bound {text}: no such figure: {found[1]}{nearest(found[1], names)}: {', '.join(names)}; nothing was "
            "measured",
            code="RW1524",
        )
    return Bound(" ".join(text.split()), found[1], found[2], float(found[3]) * (TOKENS if found[4] else 1))


def is_figure(name: str) -> bool:
    """Return True for a figure of a cell."""
    return any(figure.name == name for figure in FIGURES) or bool(PERCENTILE.match(name))


def more_is_better(figure: str) -> bool:
    """Return True if the higher one of two such figures is the better one."""
    return figure.endswith("_rate")


def broken_bounds(bounds: Iterable[Bound], cells: Mapping[str, Measured]) -> Iterator[str]:
    """Yield a sentence for each bound that a round breaks, with the cell that breaks it most. cells: whole ones."""
    for bound in bounds:
        if bound.is_context or not cells:
            continue
        values = {name: estimate(one, bound.figure).value for name, one in cells.items()}
        worst = bound.worst(values.values())
        if not bound.keeps(worst):
            cell = next(name for name, value in values.items() if value == worst)
            yield f"breaks {bound.text}: {worst:.4g} in {cell}"


def without_room(bounds: Iterable[Bound], context: int | None, longest: int) -> str:
    """Return why a variant's context does not do; empty where it does. longest: tokens of the suite's requests."""
    for bound in bounds:
        if bound.is_context and context is None:
            return f"its context is not known, and {bound.text} is a bound: set it in `engine`"
        if bound.is_context and not bound.keeps(context or 0):
            return f"its context is {context} tokens, and the bound is {bound.text}"
    if context is not None and context < longest:
        return f"its context is {context} tokens, and the suite sends requests of {longest}"
    return ""
