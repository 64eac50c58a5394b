"""Writes results as tables in Markdown, and one as a sentence. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from bench.supply.cells import AWAY, DEAD, NO_FAULT, ONE_HOST, SLOW, Cell, Result

HEAD = (
    "engine",
    "rounds",
    "median host",
    "last host",
    "last: times one host",
    "copies",
    "on the wire",
    "CPU a MB",
    "memory",
)
WORDS = {
    NO_FAULT: "no fault",
    SLOW: "one member at half the origin's rate",
    DEAD: "one member dead",
    AWAY: "one member leaves and comes",
}


@dataclass(frozen=True)
class Row:
    """The rounds of one cell together; `base`: seconds of one host alone on the same link."""

    cell: Cell
    results: tuple[Result, ...]
    base: float

    def times(self, seconds: float | None) -> str:
        """Return seconds as times one host's; where a host did not have its file, more than the cell lasted."""
        if seconds is not None:
            return f"{seconds / self.base:.2f} x"
        had = min(sum(part.seconds is not None for part in result.unaffected) for result in self.results)
        return f"> {min(result.limit for result in self.results) / self.base:.1f} x, {had} had it"

    @property
    def last(self) -> float | None:
        """The median over the rounds of the last unaffected host; None where one of them never ended."""
        return _median([result.last for result in self.results])

    @property
    def of_affected(self) -> float | None:
        """The same of the host with the fault."""
        return _median([result.of_affected for result in self.results])


def _median(values: Sequence[float | None]) -> float | None:
    found = [value for value in values if value is not None]
    return median(found) if found and len(found) == len(values) else None


def rows(results: Sequence[Result]) -> list[Row]:
    """Return the rounds of each cell together, in the order in which they were measured first."""
    found: dict[Cell, list[Result]] = {}
    for result in results:
        found.setdefault(replace(result.cell, round=1), []).append(result)
    return [Row(cell, tuple(group), base_of(results, cell)) for cell, group in found.items()]


def base_of(results: Sequence[Result], cell: Cell) -> float:
    """Return the seconds of one host alone: as measured, or by arithmetic where it was not."""
    alone = replace(cell, engine=ONE_HOST, hosts=1, fault=NO_FAULT)
    times = [result.last for result in results if replace(result.cell, round=1) == replace(alone, round=1)]
    return _median(times) or cell.alone


def tables(results: Sequence[Result]) -> Iterator[str]:
    """Return a table for each number of hosts, size, link and fault."""
    groups: dict[tuple[int, int, float, str], list[Row]] = {}
    for row in rows(results):
        if row.cell.engine != ONE_HOST:
            groups.setdefault((row.cell.hosts, row.cell.size, row.cell.link, row.cell.fault), []).append(row)
    for (hosts, size, link, fault), group in sorted(groups.items()):
        yield ""
        yield (
            f"{hosts} hosts, {size / (1 << 20):g} MiB, links of {link:g} x the origin's, {WORDS[fault]}; "
            f"one host alone takes {group[0].base:.1f} s:"
        )
        yield ""
        head = (*HEAD, "that member") if fault in (SLOW, AWAY) else HEAD
        yield f"| {' | '.join(head)} |"
        yield "|---" * len(head) + "|"
        yield from (f"| {' | '.join(_fields(row))} |" for row in group)


def _fields(row: Row) -> Iterator[str]:
    megabytes = row.cell.size / 1e6
    yield row.cell.engine
    yield str(len(row.results))
    yield _seconds(_median([result.middle for result in row.results]))
    yield _seconds(row.last)
    yield row.times(row.last)
    yield f"{median(result.copies for result in row.results):.2f}"
    yield f"{median(result.wire / row.cell.size for result in row.results):.2f}"
    yield f"{1000 * median(result.cpu for result in row.results) / megabytes:.1f} ms"
    yield f"{max(result.peak_mib for result in row.results):.0f} MiB"
    if row.cell.fault in (SLOW, AWAY):
        yield _seconds(row.of_affected)


def _seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.1f} s"


def sentence(result: Result) -> str:
    """Return one result in a line."""
    cell = result.cell
    errors = sorted({part.error for part in result.parts if part.error})
    parts = [
        f"{cell.engine}, {cell.hosts} hosts, link {cell.link:g} x, {WORDS[cell.fault]}, round {cell.round}",
        "last never"
        if result.last is None
        else f"last {result.last:.1f} s, {result.last / cell.alone:.2f} x by arithmetic",
        f"{result.copies:.2f} copies",
        f"cores busy: {result.busy:.1f} by the hosts, {result.others:.1f} by others",
        *errors,
    ]
    return "; ".join(parts)


def by_link(results: Sequence[Result]) -> Mapping[float, list[Row]]:
    """Return the rows of the largest race without a fault, by link."""
    found: dict[float, list[Row]] = {}
    clean = [row for row in rows(results) if row.cell.fault == NO_FAULT and row.cell.engine != ONE_HOST]
    most = max((row.cell.hosts for row in clean), default=0)
    for row in clean:
        if row.cell.hosts == most:
            found.setdefault(row.cell.link, []).append(row)
    return dict(sorted(found.items()))
