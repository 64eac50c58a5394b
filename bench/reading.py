"""Measures what one reading costs a host of the lab: CPU, clock and processes, in all and by section.

Run it with `python bench/reading.py INVENTORY [--rounds 20]` as root; it asks the first host of the inventory, which
should be deployed. The CPU is that of everything that works on the host then: systemd and dockerd answer too.
Programs that were started (execve) and processes that were made (fork) are counted by strace.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rackwright.adapter.run.session import chosen_hosts
from rackwright.concerns.catalog import ALL
from rackwright.concerns.composite import composite
from rackwright.settings.host_settings import HostSettings
from rackwright_lab import Host, Lab

STARTED = re.compile(r"\bexecve(?:\(| resumed>).* = 0$", re.MULTILINE)
FORKED = re.compile(r"\b(?:v?fork|clone3?)(?:\(| resumed>).* = [1-9]\d*$", re.MULTILINE)


@dataclass(frozen=True)
class Cost:
    """What a script costs; `cpu` and `wall` in milliseconds, each the median of its rounds."""

    cpu: float
    wall: float
    programs: int
    forks: int


class Meter:
    """Measures scripts on one host of the lab."""

    def __init__(self, host: Host, rounds: int) -> None:
        self._host, self._rounds = host, rounds
        self._empty = self._seconds("true")

    def cost(self, script: str) -> Cost:
        """Return what a script costs more than entering the host does."""
        cpu, wall = self._seconds(script)
        programs, forks = self._counts(script)
        empty_cpu, empty_wall = self._empty
        return Cost((cpu - empty_cpu) * 1e3, (wall - empty_wall) * 1e3, programs, forks)

    def _enter(self, script: str) -> list[str]:
        return self._host.machine.enter("sh", "-c", script)

    def _seconds(self, script: str) -> tuple[float, float]:
        rounds = [self._round(lambda: _quietly(self._enter(script))) for _ in range(self._rounds)]
        cpu, wall = zip(*rounds, strict=True)
        return statistics.median(cpu), statistics.median(wall)

    def _round(self, work: Callable[[], None]) -> tuple[float, float]:
        before, begun = self._used(), time.monotonic()
        work()
        wall = time.monotonic() - begun
        return self._used() - before, wall

    def _used(self) -> float:
        """CPU seconds of the host's own processes, and of what was started there from here."""
        ours = resource.getrusage(resource.RUSAGE_CHILDREN)
        stat = (self._host.machine.group / "cpu.stat").read_text()
        return ours.ru_utime + ours.ru_stime + int(stat.partition("usage_usec ")[2].split()[0]) / 1e6

    def _counts(self, script: str) -> tuple[int, int]:
        """Programs and forks, but for those that enter the host."""
        entered = self._traced("true")
        found = self._traced(script)
        programs, forks = (len(what.findall(found)) - len(what.findall(entered)) for what in (STARTED, FORKED))
        return programs, forks

    def _traced(self, script: str) -> str:
        calls = "trace=execve,fork,vfork,clone,clone3"
        words = ["strace", "-f", "-qq", "-e", calls, "-e", "signal=none", "-o", "/dev/stderr", *self._enter(script)]
        return subprocess.run(words, check=False, capture_output=True, text=True, errors="replace").stderr


def _quietly(words: Sequence[str]) -> None:
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def costs(meter: Meter, settings: HostSettings) -> dict[str, Cost]:
    """Return what the whole reading costs, what all sections share, and what each adds to that."""
    shared = meter.cost(composite([], settings))
    found = {"all": meter.cost(composite(ALL, settings)), "shared": shared}
    for concern in ALL:
        cost = meter.cost(composite([concern], settings))
        parts = ((getattr(cost, key) - getattr(shared, key)) for key in ("cpu", "wall", "programs", "forks"))
        found[concern.name] = Cost(*parts)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("inventory")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", type=Path, help="keep the figures in a file")
    options = parser.parse_args()
    entry = chosen_hosts(options.inventory, ())[0]
    host = next(host for host in Lab.open().hosts if host.name == entry.name)
    found = costs(Meter(host, options.rounds), entry.settings)
    print(f"{'section':12} {'CPU ms':>8} {'clock ms':>9} {'programs':>9} {'forks':>6}")
    for name, cost in found.items():
        print(f"{name:12} {cost.cpu:8.1f} {cost.wall:9.1f} {cost.programs:9} {cost.forks:6}")
    if options.json:
        options.json.write_text(json.dumps({name: vars(cost) for name, cost in found.items()}, indent=1))


if __name__ == "__main__":
    main()
