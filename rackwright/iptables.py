"""Rules of the filter table as values: parsed from iptables-save, compared by meaning, judged for order. Pure."""

from __future__ import annotations

import ipaddress
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

TAG = "rackwright:"
"""Every rule of ours has a comment that begins so."""
BUILT_IN = frozenset({"INPUT", "FORWARD", "OUTPUT"})
CLOSES = frozenset({"DROP", "REJECT"})
SETTLED = frozenset({"RELATED", "ESTABLISHED", "INVALID", "UNTRACKED"})
"""Connection states that no new connection has."""
ADDRESSES = frozenset({"-s", "-d", "--ctorigdst", "--ctorigsrc"})
PORTS = ("--dport", "--dports", "--ctorigdstport")
DEPTH = 8
"""Jumps from chain to chain that are followed; real tables have two or three."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Match = tuple[str, str]
"""An option with its value; a negated option begins with `! `."""


@dataclass(frozen=True)
class Rule:
    """One rule: its chain, and its words as iptables-save prints them after the chain."""

    chain: str
    text: str

    @cached_property
    def matches(self) -> Mapping[str, str]:
        """Options with their values, target and comment included, in a form that does not depend on spelling."""
        return dict(_normal(_options(shlex.split(self.text))))

    @property
    def comment(self) -> str:
        """Its comment, or nothing."""
        return self.matches.get("--comment", "")

    @property
    def ours(self) -> bool:
        """Whether Rackwright put it there."""
        return self.comment.startswith(TAG)

    @property
    def target(self) -> str:
        """Where it sends a packet; empty when it only counts."""
        return self.matches.get("-j", self.matches.get("-g", ""))

    def same_as(self, other: Rule) -> bool:
        """Whether both say the same, however it is spelt."""
        return self.chain == other.chain and self.matches == other.matches

    def inserted(self, position: int) -> str:
        """The line for iptables-restore that puts it at a position (the first is 1)."""
        return f"-I {self.chain} {position} {self.text}"


@dataclass(frozen=True)
class Table:
    """The filter table of one family: rules by chain, in order."""

    chains: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)

    def has(self, chain: str) -> bool:
        """Whether rules can be put into a chain; built-in ones are printed only once they were used."""
        return chain in BUILT_IN or chain in self.chains

    def rules(self, chain: str) -> tuple[Rule, ...]:
        """The rules of a chain, none when there is no such chain."""
        return self.chains.get(chain, ())

    @property
    def ours(self) -> tuple[Rule, ...]:
        """All rules of ours."""
        return tuple(rule for rules in self.chains.values() for rule in rules if rule.ours)


def parse_save(text: str) -> Table:
    """The filter table from what iptables-save printed; counters and other tables are left out."""
    chains: dict[str, list[Rule]] = {}
    table = ""
    for line in text.splitlines():
        if line.startswith("*"):
            table = line[1:].strip()
        elif table == "filter" and line.startswith(":"):
            chains.setdefault(line[1:].split(" ")[0], [])
        elif table == "filter" and line.startswith("-A "):
            _, chain, rest = f"{line} ".split(" ", 2)
            chains.setdefault(chain, []).append(Rule(chain, rest.strip()))
    return Table({name: tuple(rules) for name, rules in chains.items()})


def in_place(table: Table) -> list[str]:
    """Insertions that put our rules back exactly where they stand in a table, once they were taken out."""
    return [rule.inserted(n) for rules in table.chains.values() for n, rule in enumerate(rules, 1) if rule.ours]


def why_pending(wanted: Iterable[Rule], table: Table) -> str:
    """What keeps a table from being as wanted, as words for people; empty when it is."""
    asked, there = list(wanted), list(table.ours)
    missing = [rule for rule in asked if not any(rule.same_as(other) for other in there)]
    surplus = [rule for rule in there if not any(rule.same_as(other) for other in asked)]
    if missing or surplus:
        return " and ".join(_counted(missing, "to add") + _counted(surplus, "to remove"))
    if len(there) > len(asked):
        return "some of ours are there twice"
    for chain in dict.fromkeys(rule.chain for rule in asked):
        trouble = _out_of_place([rule for rule in asked if rule.chain == chain], table)
        if trouble:
            return trouble
    return ""


def _counted(rules: list[Rule], what: str) -> list[str]:
    return [f"{len(rules)} {what}"] if rules else []


def _out_of_place(asked: list[Rule], table: Table) -> str:
    rules = table.rules(asked[0].chain)
    ours = [rule for rule in rules if rule.ours]
    if not all(rule.same_as(other) for rule, other in zip(ours, asked, strict=True)):
        return f"ours are out of order in {asked[0].chain}"
    closing = closing_chains(table)
    behind = rules[rules.index(ours[0]) :]
    late = next((rule for rule in behind if not rule.ours and rule.target in closing), None)
    return f"in {late.chain} a rule that closes stands behind ours: {late.text}" if late else ""


def closing_chains(table: Table) -> frozenset[str]:
    """Targets that may close: DROP, REJECT, and every chain out of which one of them is reached."""
    found = set(CLOSES)
    before = 0
    while len(found) != before:
        before = len(found)
        found |= {name for name, rules in table.chains.items() if any(rule.target in found for rule in rules)}
    return frozenset(found)


def suspects(table: Table, chain: str, port: int) -> list[Rule]:
    """Rules of others that may close a TCP port for somebody, in a chain and those that it leads to."""
    return _suspects(table, Rule(chain, f"-p tcp -m tcp --dport {port} -j ACCEPT"), closing_chains(table), DEPTH)


def _suspects(table: Table, door: Rule, closing: frozenset[str], depth: int) -> list[Rule]:
    touching = [rule for rule in table.rules(door.chain) if not rule.ours and not apart(rule, door)]
    found = []
    for rule in touching:
        if rule.target in CLOSES and not _only_settled(rule):
            found.append(rule)
        elif rule.target in closing and depth:
            found += _suspects(table, Rule(rule.target, door.text), closing, depth - 1)
    return found


def _only_settled(rule: Rule) -> bool:
    states = rule.matches.get("--ctstate") or rule.matches.get("--state")
    return states is not None and set(states.split(",")) <= SETTLED


def apart(one: Rule, other: Rule) -> bool:
    """Whether it is certain that no packet matches both rules."""
    return (
        _protocols_apart(one, other)
        or any(_networks_apart(one, other, option) for option in ("-s", "-d"))
        or any(_names_apart(one, other, option) for option in ("-i", "-o"))
        or _ports_apart(one, other)
    )


def _protocols_apart(one: Rule, other: Rule) -> bool:
    mine, theirs = one.matches.get("-p", "all"), other.matches.get("-p", "all")
    return "all" not in (mine, theirs) and mine != theirs


def _networks_apart(one: Rule, other: Rule, option: str) -> bool:
    mine, theirs = _network(one.matches.get(option)), _network(other.matches.get(option))
    return mine is not None and theirs is not None and mine.version == theirs.version and not mine.overlaps(theirs)


def _names_apart(one: Rule, other: Rule, option: str) -> bool:
    mine, theirs = one.matches.get(option), other.matches.get(option)
    if mine is None or theirs is None or mine.endswith("+") or theirs.endswith("+"):
        return False
    return mine != theirs


def _ports_apart(one: Rule, other: Rule) -> bool:
    mine, theirs = _ports(one), _ports(other)
    return mine is not None and theirs is not None and not any(a <= d and c <= b for a, b in mine for c, d in theirs)


def _ports(rule: Rule) -> list[tuple[int, int]] | None:
    """Ranges of destination ports, or None when the rule takes any (or names them in a way not known here).

    An endpoint is published under its own port, so the port asked for is that of its container, too.
    """
    said = next((rule.matches[name] for name in PORTS if name in rule.matches), None)
    try:
        return None if said is None else [_range(part) for part in said.split(",")]
    except ValueError:
        return None


def _range(text: str) -> tuple[int, int]:
    first, _, last = text.partition(":")
    return int(first or 0), int(last or (65535 if ":" in text else first))


def _network(text: str | None) -> Network | None:
    try:
        return None if text is None else ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _options(words: list[str]) -> Iterator[Match]:
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "!" and rest:
            word = f"! {rest.pop(0)}"
        values = [rest.pop(0)] if word == "--comment" and rest else []
        while rest and not rest[0].startswith("-") and rest[0] != "!" and word != "--comment":
            values.append(rest.pop(0))
        yield word, " ".join(values)


def _normal(options: Iterable[Match]) -> Iterator[Match]:
    """Without names of match modules, which their options imply, and with addresses in one spelling."""
    for option, value in options:
        network = _network(value) if option.removeprefix("! ") in ADDRESSES else None
        if option == "-m" or (network is not None and network.prefixlen == 0 and "!" not in option):
            continue
        yield option, str(network) if network is not None else value
