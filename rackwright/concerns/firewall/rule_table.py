"""Rules of the filter table as values: parsed from iptables-save, compared by meaning, judged for order. Pure."""

from __future__ import annotations

import ipaddress
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import MappingProxyType

TAG = "rackwright:"
"""Every rule of Rackwright's has a comment with this prefix."""
BUILT_IN = frozenset({"INPUT", "FORWARD", "OUTPUT"})
CLOSES = frozenset({"DROP", "REJECT"})
ADDRESSES = frozenset({"-s", "-d", "--ctorigdst", "--ctorigsrc"})

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Match = tuple[str, str]
"""An option with its value; a negated option begins with `! `."""


@lru_cache(4096)
def _matches(text: str) -> Mapping[str, str]:
    """Parse a rule's options; cached, since most rules of a fleet are the same on each host."""
    return MappingProxyType(dict(_normal(_options(shlex.split(text)))))


@dataclass(frozen=True)
class Rule:
    """One rule: its chain, and its text as iptables-save prints it after the chain."""

    chain: str
    text: str

    @cached_property
    def matches(self) -> Mapping[str, str]:
        """Options with their values, target and comment included, in a form that does not depend on spelling."""
        return _matches(self.text)

    @property
    def comment(self) -> str:
        """Its comment, or an empty text."""
        return self.matches.get("--comment", "")

    @property
    def ours(self) -> bool:
        """True if Rackwright added it."""
        return self.comment.startswith(TAG)

    @property
    def target(self) -> str:
        """Target of a matching packet; empty when it only counts."""
        return self.matches.get("-j", self.matches.get("-g", ""))

    def same_as(self, other: Rule) -> bool:
        """Return True if both rules mean the same, whatever their spelling."""
        return self.chain == other.chain and self.matches == other.matches

    def inserted(self, position: int) -> str:
        """Return the line for iptables-restore that inserts it at a position (the first is 1)."""
        return f"-I {self.chain} {position} {self.text}"


@dataclass(frozen=True)
class Table:
    """The filter table of one family: rules by chain, in order."""

    chains: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)

    def has(self, chain: str) -> bool:
        """Return True if rules can be added to a chain; built-in ones are printed only once they were used."""
        return chain in BUILT_IN or chain in self.chains

    def rules(self, chain: str) -> tuple[Rule, ...]:
        """Return the rules of a chain; none when the chain is missing."""
        return self.chains.get(chain, ())

    @property
    def ours(self) -> tuple[Rule, ...]:
        """All rules of Rackwright's."""
        return tuple(rule for rules in self.chains.values() for rule in rules if rule.ours)


def parse_save(text: str) -> Table:
    """Parse the filter table from the output of iptables-save; counters and other tables are left out."""
    chains: dict[str, list[Rule]] = {}
    table = ""
    for row in text.splitlines():
        if row.startswith("*"):
            table = row[1:].strip()
        elif table == "filter" and row.startswith(":"):
            chains.setdefault(row[1:].partition(" ")[0], [])
        elif table == "filter" and row.startswith("-A "):
            _, chain, options = f"{row} ".split(" ", 2)
            chains.setdefault(chain, []).append(Rule(chain, options.strip()))
    return Table({name: tuple(rules) for name, rules in chains.items()})


def in_place(table: Table) -> list[str]:
    """Return insertions that restore Rackwright's rules at their exact positions in a table after a removal."""
    return [rule.inserted(n) for rules in table.chains.values() for n, rule in enumerate(rules, 1) if rule.ours]


def why_pending(wanted: Iterable[Rule], table: Table) -> str:
    """Return the reason why a table is not as wanted, as text for people; empty when it is."""
    expected, present = list(wanted), list(table.ours)
    missing = [rule for rule in expected if not any(rule.same_as(other) for other in present)]
    surplus = [rule for rule in present if not any(rule.same_as(other) for other in expected)]
    if missing or surplus:
        return " and ".join(_counted(missing, "to add") + _counted(surplus, "to remove"))
    if len(present) > len(expected):
        return "some of Rackwright's rules are there twice"
    for chain in dict.fromkeys(rule.chain for rule in expected):
        trouble = _out_of_place([rule for rule in expected if rule.chain == chain], table)
        if trouble:
            return trouble
    return ""


def _counted(rules: list[Rule], what: str) -> list[str]:
    return [f"{len(rules)} {what}"] if rules else []


def _out_of_place(expected: list[Rule], table: Table) -> str:
    rules = table.rules(expected[0].chain)
    ours = [rule for rule in rules if rule.ours]
    if not all(rule.same_as(other) for rule, other in zip(ours, expected, strict=True)):
        return f"ours are out of order in {expected[0].chain}"
    closing = closing_chains(table)
    behind = rules[rules.index(ours[0]) :]
    late = next((rule for rule in behind if not rule.ours and rule.target in closing), None)
    return f"in {late.chain} a rule that closes stands behind ours: {late.text}" if late else ""


def closing_chains(table: Table) -> frozenset[str]:
    """Return the targets that may close: DROP, REJECT, and every chain that leads to one of them."""
    found = set(CLOSES)
    before = 0
    while len(found) != before:
        before = len(found)
        found |= {name for name, rules in table.chains.items() if any(rule.target in found for rule in rules)}
    return frozenset(found)


def network_of(text: str | None) -> Network | None:
    """Parse a network; None when the text is missing, or is a name."""
    try:
        return None if text is None else ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _options(words: list[str]) -> Iterator[Match]:
    remaining = list(words)
    while remaining:
        option = remaining.pop(0)
        if option == "!" and remaining:
            option = f"! {remaining.pop(0)}"
        values = [remaining.pop(0)] if option == "--comment" and remaining else []
        while remaining and not remaining[0].startswith("-") and remaining[0] != "!" and option != "--comment":
            values.append(remaining.pop(0))
        yield option, " ".join(values)


def _normal(options: Iterable[Match]) -> Iterator[Match]:
    """Yield the options without names of match modules, which they imply, and with addresses in one spelling."""
    for option, value in options:
        network = network_of(value) if option.removeprefix("! ") in ADDRESSES else None
        if option == "-m" or (network is not None and network.prefixlen == 0 and "!" not in option):
            continue
        yield option, str(network) if network is not None else value
