"""State that one run carries from one operation to the next. It is stored on pyinfra's State, and ends with it.

Each module that has state to carry defines a class for it: a process with two States has two runs, and neither
sees what the other knows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pyinfra.api.state import State

Part = TypeVar("Part")


@dataclass(frozen=True)
class RunContext:
    """The parts of one run, each by its class."""

    parts: dict[type[Any], Any] = field(default_factory=dict)

    def part(self, kind: type[Part]) -> Part:
        """Return the run's one object of a class, made when it is first requested."""
        if kind not in self.parts:
            self.parts[kind] = kind()
        found: Part = self.parts[kind]
        return found


def context_of(state: State) -> RunContext:
    """Return the context of a State's run."""
    found: RunContext = vars(state).setdefault("rackwright", RunContext())
    return found


def part_of(state: State, kind: type[Part]) -> Part:
    """Return one part of it."""
    return context_of(state).part(kind)


def share(kind: type[Any], giver: State, taker: State) -> None:
    """Let two runs have one part in common: what is learned offline for a run goes by the run's own settings."""
    context_of(taker).parts[kind] = part_of(giver, kind)


@dataclass(frozen=True)
class RunningJobs:
    """The jobs of this run that run on hosts, as far as it knows."""

    count: Counter[str] = field(default_factory=Counter)

    @property
    def hosts(self) -> set[str]:
        """Hosts with any."""
        return {host for host, number in self.count.items() if number}

    def add(self, host: str) -> None:
        """Note that a job has begun."""
        self.count[host] += 1

    def remove(self, host: str) -> None:
        """Note that a job has ended."""
        self.count[host] -= 1
