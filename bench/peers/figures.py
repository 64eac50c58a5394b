"""Figures of a sitting: medians and ratios, as a table and as JSON. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.peers.meter import Spent


@dataclass(frozen=True)
class Figure:
    """What one tool costs: medians of its rounds; memory in MiB, and the commands that a host got at most."""

    wall: float
    cpu: float
    client: float
    others: float
    memory: float
    commands: int


@dataclass(frozen=True)
class Sitting:
    """All tools on as many hosts, measured in turn."""

    hosts: int
    rounds: int
    tasks: int
    figures: Mapping[str, Figure]

    @property
    def as_json(self) -> dict[str, Any]:
        """Plain values, rounded to their measuring accuracy."""
        tools = {
            name: {key: round(value, 2) for key, value in asdict(one).items()} for name, one in self.figures.items()
        }
        return {"hosts": self.hosts, "rounds": self.rounds, "tasks": self.tasks, "tools": tools}


def sitting_of(values: Mapping[str, Any]) -> Sitting:
    """Return what `as_json` wrote. Raises KeyError or TypeError when it is something else."""
    figures = {name: Figure(**one) for name, one in values["tools"].items()}
    return Sitting(values["hosts"], values["rounds"], values["tasks"], figures)


def figure_of(rounds: Sequence[Spent], memory: int, commands: int) -> Figure:
    """Return the medians of a tool's rounds."""
    names = ("wall", "cpu", "client", "others")
    wall, cpu, client, others = (statistics.median(getattr(one, name) for one in rounds) for name in names)
    return Figure(wall, cpu, client, others, memory / 2**20, commands)


def ratios(sitting: Sitting, key: str, base: str) -> dict[str, float]:
    """How many times what `base` costs each tool costs. Raises KeyError when `base` was not measured."""
    one = float(getattr(sitting.figures[base], key))
    return {name: float(getattr(figure, key)) / one for name, figure in sitting.figures.items()}


def table(sitting: Sitting, base: str) -> list[str]:
    """Return the figures as a Markdown table."""
    wall, cpu = (ratios(sitting, key, base) for key in ("wall", "cpu"))
    head = [
        "clock, s",
        "times ours",
        "CPU, s",
        "of it client",
        "times ours",
        "memory, MiB",
        "commands a host",
        "others",
    ]
    lines = [f"| {sitting.hosts} hosts | {' | '.join(head)} |", f"|---|{'---|' * len(head)}"]
    for name, one in sitting.figures.items():
        columns = f"{one.wall:.2f} | {wall[name]:.2f} | {one.cpu:.2f} | {one.client:.2f} | {cpu[name]:.2f}"
        lines.append(f"| {name} | {columns} | {one.memory:.0f} | {one.commands} | {one.others:.1f} cores |")
    return lines
