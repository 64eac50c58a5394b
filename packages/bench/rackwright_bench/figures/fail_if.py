"""`--fail-if "ttft_p99 > 1.1x of RUN"`: a limit that a run must keep, absolute or against another run. Pure."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rackwright.messages import SettingsError
from rackwright_bench.figures.compare import FIGURES, estimate, ratio_of
from rackwright_bench.figures.figures import Measured
from rackwright_engines.nearest import nearest

FORM = re.compile(r"\s*(\w+)\s*(<=|>=|<|>)\s*(\d+(?:\.\d+)?)\s*(?:(x)\s+of\s+(\S+))?\s*\Z")
COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class FailIf:
    """A limit. `run`: what it is a multiple of; empty: the limit is the figure itself."""

    text: str
    figure: str
    sign: str
    limit: float
    run: str = ""


def fail_if_of(text: str) -> FailIf:
    """Return what `--fail-if` says. Raises SettingsError with the form, and the nearest right name."""
    found, names = FORM.match(text), [figure.name for figure in FIGURES]
    if found is None:
        form = '"FIGURE > NUMBER" or "FIGURE > NUMBERx of RUN"'
        raise SettingsError(f"--fail-if {text}: must be {form}; nothing was measured", code="RW1515")
    if found[1] not in names:
        hint = nearest(found[1], names)
        raise SettingsError(f"--fail-if {text}: no such figure: {found[1]}{hint}: {', '.join(names)}", code="RW1515")
    return FailIf(text, found[1], found[2], float(found[3]), found[5] or "")


def broken(rule: FailIf, cells: Mapping[str, Measured], other: Mapping[str, Measured]) -> Iterator[str]:
    """Yield a sentence for each cell that breaks it, and for each that cannot be judged by it.

    other: the cells of `rule.run`. A limit that is a multiple is broken only where the whole 95 % interval says so.
    """
    for name, cell in cells.items():
        if cell.failed or not cell.requests:
            yield f"{name}: {rule.text}: requests failed, so it has no figures"
        elif not rule.run:
            value = estimate(cell, rule.figure).value
            if COMPARE[rule.sign](value, rule.limit):
                yield f"{name}: {rule.figure} is {value:.4g}, and --fail-if says {rule.text}"
        elif name not in other or other[name].failed or not other[name].requests:
            yield f"{name}: {rule.text}: run {rule.run} has no figures of this cell"
        else:
            yield from _by_ratio(rule, name, cell, other[name])


def _by_ratio(rule: FailIf, name: str, cell: Measured, other: Measured) -> Iterator[str]:
    ratio = ratio_of(estimate(other, rule.figure), estimate(cell, rule.figure))
    judged = (ratio.low, ratio.high) if ratio.is_bounded else (ratio.value,)
    if all(COMPARE[rule.sign](value, rule.limit) for value in judged):
        yield f"{name}: {rule.figure} is {ratio.value:.3g}x of run {rule.run}'s, and --fail-if says {rule.text}"
