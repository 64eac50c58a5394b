"""Runs one cell on lab hosts: all begin at one moment, a fault strikes, and it ends when the last has its file."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from threading import Timer
from types import TracebackType
from typing import Any

from bench.peers.meter import busy_seconds, seconds_of
from bench.supply import ground
from bench.supply.cells import AWAY, DEAD, RATE, SLOW, Cell, Part, Result
from bench.supply.engines import DATA, ENGINES, HOME, PYTHON, RUN, TRACKER_PORT, Race, Start
from rackwright_lab import Host

PAUSE = 0.2
SOON = 1.0
"""Seconds from the word to begin until all begin."""
MOST, LEAST = 5.0, 60.0
"""A cell ends after so many times one host's time, and not before so many seconds."""
LEAVES, COMES = 0.4, 0.6
"""When the member with a fault leaves, and comes again, as shares of one host's time. A dead one leaves for good."""
STOPPING = 300.0
"""Seconds in which all engines end and all files are read once more."""


class Track:
    """An origin and members, with the file that lies at the origin."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self.origin, *self.members = hosts
        self._size, self._sha256 = 0, ""

    def measure(self, cell: Cell, most: float = MOST) -> Result:
        """Run one cell. Raises LabError where a host could not begin."""
        members = self.members[: cell.hosts]
        race = self._race(cell, members)
        limit = max(LEAST, most * cell.alone * cell.copies_at_least)
        self._clear()
        try:
            self._lay(cell, race, members, limit)
            ground.each(members, lambda host: ground.launch(host, ground.MEMBER, PYTHON, *PROGRAM))
            before = ground.wire_bytes(self.origin)
            with Cores([self.origin, *self.members]) as cores:
                self._run(cell, members, limit)
            wire, body = ground.wire_bytes(self.origin) - before, ground.body_bytes(self.origin)
            parts = tuple(map(part_of, members))
        finally:
            self._clear()
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return Result(cell, parts, body, wire, limit, cores.others, now, cores.hosts)

    def _race(self, cell: Cell, members: Sequence[Host]) -> Race:
        if cell.size != self._size:
            self._sha256 = ground.prepare([self.origin, *self.members], cell.size)
            self._size = cell.size
        return Race(
            tuple(host.address for host in members), self.origin.address, cell.size, self._sha256, token_hex(32)
        )

    def _clear(self) -> None:
        """Leave no process and no file of a cell, and links without a limit."""
        ground.each(self.members, clear)
        ground.end(self.origin, ground.TRACKER)

    def _lay(self, cell: Cell, race: Race, members: Sequence[Host], seconds: float) -> None:
        """Limit all links, start the tracker, and write down what each host runs."""
        ground.limit(self.origin, RATE, receives=RATE * 100)
        ground.forget_bodies(self.origin)
        ground.launch(self.origin, ground.TRACKER, PYTHON, f"{HOME}/tracker.py", str(TRACKER_PORT))
        for index, host in enumerate(members):
            ground.limit(host, link_of(cell, index))
            start = ENGINES[cell.engine](race, index)
            for path, text in start.files.items():
                ground.put(host, path, text)
            ground.put(host, PROGRAM[1], json.dumps(spec_of(cell, race, index, start, seconds)))

    def _run(self, cell: Cell, members: Sequence[Host], seconds: float) -> None:
        begun = time.time() + SOON
        for host in members:
            ground.put(host, f"{RUN}/go", str(begun))
        waited = [host for index, host in enumerate(members) if cell.fault != DEAD or index != cell.affected]
        with cable_cut(cell, members):
            while time.time() - begun < seconds and not all(map(has_ended, waited)):
                time.sleep(PAUSE)
            stop(members)


@contextmanager
def cable_cut(cell: Cell, members: Sequence[Host]) -> Iterator[None]:
    """Let a member lose its cable in the middle, where that is the cell's fault."""
    if cell.fault != DEAD or cell.affected is None:
        yield
        return
    dead = members[cell.affected]
    timer = Timer(SOON + LEAVES * cell.alone, dead.cut_network)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        dead.restore_network()


PROGRAM = (f"{HOME}/member.py", f"{HOME}/member.json")


def link_of(cell: Cell, index: int) -> float:
    """Return the bytes a second of a member's link; a slow one has half of what the origin gives."""
    return RATE * min(1.0, cell.link) / 2 if cell.fault == SLOW and index == cell.affected else RATE * cell.link


def spec_of(cell: Cell, race: Race, index: int, start: Start, seconds: float) -> dict[str, Any]:
    """Return the file that member.py reads."""
    away = [LEAVES * cell.alone, COMES * cell.alone] if cell.fault == AWAY and index == cell.affected else None
    return {
        "argv": start.argv,
        "folder": RUN,
        "file": DATA,
        "sha256": race.sha256,
        "marker": start.marker,
        "verifies": start.verifies,
        "away": away,
        "limit": seconds + STOPPING,
    }


def clear(host: Host) -> None:
    """Leave no process and no file of a cell on a member, and a link without a limit."""
    ground.end(host, ground.MEMBER)
    host.run(f"rm -rf {RUN}; mkdir -p {RUN}")
    ground.limit(host, ground.UNLIMITED * 1e6 / 8)


def has_ended(host: Host) -> bool:
    """Return whether a member has its file, or has given up."""
    return ground.inside(host, f"{RUN}/done.json").exists()


def stop(members: Sequence[Host]) -> None:
    """Let all members end their engines, and wait until they have written what those used."""
    for host in members:
        ground.put(host, f"{RUN}/stop", "")
    deadline = time.time() + STOPPING
    while time.time() < deadline and not all(_result(host).exists() for host in members):
        time.sleep(PAUSE)


def _result(host: Host) -> Path:
    return ground.inside(host, f"{RUN}/result.json")


def part_of(host: Host) -> Part:
    """Return what one host did; where it wrote no result, that."""
    file = _result(host)
    if not file.exists():
        return Part(host.name, None, 0.0, 0.0, 0, "no result")
    found = json.loads(file.read_text())
    found.pop("starts")
    return Part(host.name, **found)


class Cores:
    """Measures how many cores the hosts kept busy, and how many something else did."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self._groups = [host.machine.group for host in hosts]
        self.hosts = self.others = 0.0

    def __enter__(self) -> Cores:
        self._begun, self._before = time.monotonic(), self._used()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        busy, hosts = (new - old for new, old in zip(self._used(), self._before, strict=True))
        seconds = time.monotonic() - self._begun
        self.hosts, self.others = hosts / seconds, max(0.0, busy - hosts) / seconds

    def _used(self) -> tuple[float, float]:
        return busy_seconds(Path("/proc/stat").read_text()), sum(map(seconds_of, self._groups))
