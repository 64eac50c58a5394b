"""The cells of the race: engine, links, fault and round, and their form on disk. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

RATE = 2_000_000
"""Bytes that the origin's link carries in a second."""
NO_FAULT, SLOW, DEAD, AWAY = "none", "slow", "dead", "away"
FAULTS = (NO_FAULT, SLOW, DEAD, AWAY)
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
ONE_HOST, PROXY, FROM_ORIGIN = "one host", "proxy", "all from origin"
ONE_LINK = (PROXY, FROM_ORIGIN)
PART = 16


@dataclass(frozen=True)
class Cell:
    """One measurement. `link`: a host's link, as times the origin's; `round` counts from 1."""

    engine: str
    hosts: int
    size: int
    link: float
    fault: str = NO_FAULT
    round: int = 1

    @property
    def alone(self) -> float:
        """Seconds that the origin's link needs for one copy, by arithmetic."""
        return self.size / (RATE * min(1.0, self.link))

    @property
    def copies_at_least(self) -> int:
        """Copies of the file that the busiest link carries."""
        return self.hosts if self.engine in ONE_LINK else 1

    @property
    def affected(self) -> int | None:
        """The index of the member that has the fault, early in the order: more come after it than before it."""
        return None if self.fault == NO_FAULT else max(1, self.hosts // 4)


@dataclass(frozen=True)
class Part:
    """One host's part. `seconds` until its file was verified; None: it never was, by `error`."""

    host: str
    seconds: float | None
    cpu: float
    check: float
    peak_kib: int
    error: str | None = None


@dataclass(frozen=True)
class Result:
    """A measured cell: all parts in the hosts' order, bytes of the origin, and cores that others kept busy.

    `limit`: seconds after which it was ended where a host did not have its file; `busy`: cores that hosts used.
    """

    cell: Cell
    parts: tuple[Part, ...]
    body: int
    wire: int
    limit: float
    others: float
    when: str
    busy: float = 0.0

    @property
    def copies(self) -> float:
        """Times that the origin sent the file, headers left out."""
        return self.body / self.cell.size

    @property
    def unaffected(self) -> list[Part]:
        """All parts but the one that has the fault."""
        return [part for index, part in enumerate(self.parts) if index != self.cell.affected]

    @property
    def last(self) -> float | None:
        """When the last unaffected host had its file; None where one never had."""
        times = [part.seconds for part in self.unaffected]
        return max(time for time in times if time is not None) if all(times) else None

    @property
    def middle(self) -> float | None:
        """The median of the unaffected hosts that had their file."""
        times = [part.seconds for part in self.unaffected if part.seconds is not None]
        return median(times) if times else None

    @property
    def of_affected(self) -> float | None:
        """When the host with the fault had its file."""
        return None if self.cell.affected is None else self.parts[self.cell.affected].seconds

    @property
    def cpu(self) -> float:
        """CPU seconds of the engine on a host, as the median."""
        return median(part.cpu for part in self.parts)

    @property
    def peak_mib(self) -> float:
        """The largest peak of the engine's memory on a host."""
        return max(part.peak_kib for part in self.parts) / 1024


def size_of(text: str) -> int:
    """Return the bytes of "16MiB". Raises ValueError."""
    found = re.fullmatch(r"(\d+) ?(KiB|MiB|GiB)", text)
    if not found:
        raise ValueError(f"{text} is not a size like 256MiB")
    return int(found[1]) * UNITS[found[2]]


def plan(
    engines: Sequence[str], hosts: int, size: int, links: Sequence[float], faults: Sequence[str], rounds: int
) -> Iterator[Cell]:
    """Return all cells, those without a fault first, round after round: an hour of the machine meets all engines.

    Where one link carries all copies, time grows with the hosts: a part of the size shows it, and no fault matters.
    """
    sized = {engine: size // PART if engine in ONE_LINK else size for engine in engines}
    for fault, number, link in product(faults, range(1, rounds + 1), links):
        chosen = [engine for engine in engines if fault == NO_FAULT or engine not in ONE_LINK]
        if fault == NO_FAULT:
            yield from (Cell(ONE_HOST, 1, each, link, fault, number) for each in sorted(set(sized.values())))
        yield from (Cell(engine, hosts, sized[engine], link, fault, number) for engine in chosen)


def read(file: Path) -> list[Result]:
    """Return the results of a file; none where it is missing."""
    rows = json.loads(file.read_text()) if file.exists() else []
    return [result_of(row) for row in rows]


def result_of(row: dict[str, Any]) -> Result:
    """Return a result as `write` has written it."""
    parts = tuple(Part(**part) for part in row["parts"])
    return Result(**{**row, "cell": Cell(**row["cell"]), "parts": parts})


def write(file: Path, results: Iterable[Result]) -> None:
    """Write results to a file, one a line, in one move."""
    partial = file.with_suffix(".partial")
    partial.write_text("[\n" + ",\n".join(json.dumps(asdict(result)) for result in results) + "\n]\n")
    partial.rename(file)
