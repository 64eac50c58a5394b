"""The order of switches: canaries, waves and limits as pure functions (DECISIONS 30 to 32).

A canary is the first host of each shape, by label or else by inventory order: what runs there, and on which GPUs,
since a GB200 proves nothing for an RTX PRO. Hosts that serve follow in waves, never more of them down in a group or
rack than its limit; hosts that do not serve follow all at once, as soon as a host of their shape has answered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

CANARIES = 0
"""Number of the wave that the canaries are."""
FIRST, LAST = -1, 1
"""Ranks of hosts that do not go in inventory order."""


class Turn(Enum):
    """State of a host in the queue."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "not switched"


@dataclass(frozen=True)
class Node:
    """One host that must switch."""

    name: str
    order: int
    serving: bool
    shape: str = ""
    """Hosts of equal shape prove something for each other."""
    domains: tuple[str, ...] = ("all",)
    """Groups and the rack, each with a limit of its own."""
    rank: int = 0
    """FIRST: labelled as canary, or found in the middle of its switch. LAST: with a fault of its own already."""
    is_down: bool = False
    """It was found in the middle of its switch: to join it takes nothing more away, and the host waits for that."""


@dataclass(frozen=True)
class RunLimits:
    """Limits of a run."""

    down: Mapping[str, int]
    """Serving hosts that may be down at the same time, by domain; one where a domain is not named."""
    wave: int | None = None
    """Serving hosts a wave; None: no waves after the canaries."""
    budget: int = 0
    """Hosts that may fail by a fault of their own."""
    bake: int = 0
    """Seconds for which a finished wave is watched before the next begins."""


@dataclass(frozen=True)
class RunProgress:
    """Progress of a run."""

    turns: Mapping[str, Turn]
    lost: frozenset[str] = frozenset()
    """Hosts that served before and no longer serve."""
    baked: int = 0
    """Waves that have been watched to their end."""


def amount(text: str, of: int, least: int = 1) -> int:
    """Return a number or a percentage of `of` hosts, rounded down; never less than `least`."""
    number = of * int(text[:-1]) // 100 if text.endswith("%") else int(text)
    return max(least, number)


def in_order(nodes: Collection[Node]) -> list[Node]:
    """Nodes in inventory order, with those that go first before, and those that go last behind the others."""
    return sorted(nodes, key=lambda node: (node.rank, node.order))


def wave_numbers(nodes: Collection[Node], size: int | None) -> dict[str, int]:
    """Return the wave of each host: canaries are wave 0, hosts that serve 1, 2, ...; the others join the first wave."""
    numbers: dict[str, int] = {}
    shapes: set[str] = set()
    followers = 0
    for node in in_order(nodes):
        if node.is_down or node.shape not in shapes:
            shapes.add(node.shape)
            numbers[node.name] = CANARIES
        elif node.serving:
            numbers[node.name] = 1 + (followers // size if size else 0)
            followers += 1
        else:
            numbers[node.name] = 1
    return numbers


def waves_event(nodes: Collection[Node], limits: RunLimits) -> dict[str, Any]:
    """Waves and limits as the record of a run keeps them.

    `waves`: names by wave, canaries first. `down`: hosts of each domain that take capacity away while they switch,
    and how many of them may do so at a time. `bake`: seconds between waves.
    """
    numbers = wave_numbers(nodes, limits.wave)
    waves = [[node.name for node in in_order(nodes) if numbers[node.name] == at] for at in sorted({*numbers.values()})]
    domains = sorted({domain for node in nodes if node.serving for domain in node.domains})
    down = {
        domain: {
            "limit": limits.down.get(domain, 1),
            "hosts": [node.name for node in in_order(nodes) if node.serving and domain in node.domains],
        }
        for domain in domains
    }
    return {"waves": waves, "down": down, "bake": limits.bake}


def current_wave(nodes: Collection[Node], progress: RunProgress, size: int | None) -> int | None:
    """Return the lowest wave that is not finished; None when all are."""
    numbers = wave_numbers(nodes, size)
    return min((numbers[node.name] for node in nodes if progress.turns[node.name] in _OPEN), default=None)


_OPEN = (Turn.WAITING, Turn.RUNNING)


def bake_due(nodes: Collection[Node], progress: RunProgress, size: int | None) -> int | None:
    """Return the finished wave that must be watched before the next begins, or None."""
    wave = current_wave(nodes, progress, size)
    begun = wave is not None and wave > progress.baked
    return progress.baked if begun else None


def eligible(nodes: Collection[Node], progress: RunProgress, limits: RunLimits) -> list[str]:
    """Hosts that may begin now, beside those that are under way, in inventory order."""
    return list(_eligible(in_order(nodes), progress, limits))


def _eligible(nodes: Sequence[Node], progress: RunProgress, limits: RunLimits) -> Iterator[str]:
    turns, numbers = progress.turns, wave_numbers(nodes, limits.wave)
    proven = {node.shape for node in nodes if turns[node.name] is Turn.DONE}
    tried = {node.shape for node in nodes if turns[node.name] is Turn.RUNNING}
    down = _down(nodes, progress)
    for node in nodes:
        if turns[node.name] is not Turn.WAITING:
            continue
        if node.is_down:
            tried.add(node.shape)
            yield node.name
            continue
        is_canary = node.shape not in proven
        if is_canary and node.shape in tried:
            continue
        if not is_canary and node.serving and numbers[node.name] > progress.baked:
            continue
        tried.add(node.shape)  # no other host replaces a canary that a limit holds back
        if node.serving and not _has_room(node, down, limits):
            continue
        for domain in node.domains if node.serving else ():
            down[domain] = down.get(domain, 0) + 1
        yield node.name


def _down(nodes: Collection[Node], progress: RunProgress) -> dict[str, int]:
    counts: dict[str, int] = {}
    for node in nodes:
        turn = progress.turns[node.name]
        joins = node.is_down and turn is Turn.WAITING
        if node.serving and (turn is Turn.RUNNING or joins or node.name in progress.lost):
            for domain in node.domains:
                counts[domain] = counts.get(domain, 0) + 1
    return counts


def _has_room(node: Node, down: Mapping[str, int], limits: RunLimits) -> bool:
    return all(down.get(domain, 0) < limits.down.get(domain, 1) for domain in node.domains)
