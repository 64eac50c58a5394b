"""What may close an endpoint's port on its host, whoever made it: the reading, and where it says to look. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rackwright.concerns.firewall.iptables import Table, parse_save
from rackwright.concerns.firewall.nft import closing_tables
from rackwright.concerns.firewall.suspects import Knock, suspects
from rackwright.plan.reach import Door
from rackwright.plan.reading import decode

MOST = 3
"""Suspects that are named; the command that follows shows them all."""


@dataclass(frozen=True)
class Closers:
    """The rules of a host as they are at this moment."""

    tables: Mapping[str, Table]
    """Filter tables by command."""
    nft: str = ""
    came_by: str = ""
    """Interface of whoever could not connect."""
    bridge: str = ""
    """Docker's default bridge."""


def parse_closers(lines: Iterable[str]) -> Closers:
    """Parse the reading. Raises ReadingError."""
    rows = [line.rpartition(" ") for line in lines if " " in line]
    said = {what: decode(text) for what, _, text in rows}
    tables = {what.removeprefix("table "): parse_save(text) for what, text in said.items() if what.startswith("table ")}
    return Closers(tables, said.get("nft", ""), said.get("came_by", "").strip(), said.get("bridge", "").strip())


@dataclass(frozen=True)
class Suspect:
    """What may close a port, and the command that shows it."""

    text: str
    look: str


def named(closers: Closers, door: Door, source: str) -> list[Suspect]:
    """What may close the door for this address, iptables' rules first, the most that are worth naming."""
    return [*_rules(closers, door, source), *_tables(closers, door)][:MOST]


def _rules(closers: Closers, door: Door, source: str) -> Iterator[Suspect]:
    for command, table in closers.tables.items():
        for chain in _chains(door, source):
            knock = Knock(door.port, source, closers.came_by, closers.bridge if chain == "FORWARD" else "")
            for rule in suspects(table, chain, knock):
                yield Suspect(f"the {command} rule {rule.chain} {rule.text}", f"sudo {command} -nvL {rule.chain}")


def _tables(closers: Closers, door: Door) -> Iterator[Suspect]:
    hooks = ("prerouting", "input" if door.network == "host" else "forward")
    for table in closing_tables(closers.nft, hooks, door.port):
        yield Suspect(f"the nft table {table}", f"sudo nft list table {table}")


def _chains(door: Door, source: str) -> tuple[str, ...]:
    """The chains that decide. Without rules of Docker's for IPv6, a published port is served by its proxy."""
    if door.network == "host":
        return ("INPUT",)
    return ("FORWARD", "INPUT") if ":" in source else ("FORWARD",)
