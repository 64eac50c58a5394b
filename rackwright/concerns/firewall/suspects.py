"""Which rules of others may close a port that a connection could not be made to. Pure.

A connection decides whether the port is closed; what is found here only says where to look.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rackwright.concerns.firewall.iptables import CLOSES, Rule, Table, network_of

NOT_NEW = frozenset({"RELATED", "ESTABLISHED", "INVALID", "UNTRACKED"})
"""Connection states that no new connection has."""
PORTS = ("--dport", "--dports", "--ctorigdstport")
DEPTH = 8
"""Jumps from chain to chain that are followed; real tables have two or three."""
FINAL = frozenset({"ACCEPT", *CLOSES})
NEVER_MISSED = frozenset({"-j", "-g", "--comment", "--reject-with"})
"""Options that every packet satisfies."""
DOCKER = "DOCKER"
"""Docker's own chains begin so: what they let in is published, and what they close is never a published port."""
DOCKER_USER = "DOCKER-USER"


@dataclass(frozen=True)
class Knock:
    """A new connection as a chain of iptables sees it. `source` and the interfaces are empty where unknown."""

    port: int
    source: str = ""
    came_by: str = ""
    leaves_by: str = ""

    @property
    def rule(self) -> Rule:
        """The rule that matches such connections, and nothing else."""
        options = (("-s", self.source), ("-i", self.came_by), ("-o", self.leaves_by))
        known = " ".join(f"{option} {value}" for option, value in options if value)
        return Rule("", f"{known} -p tcp -m tcp --dport {self.port}".strip())


def suspects(table: Table, chain: str, knock: Knock) -> list[Rule]:
    """Rules of others that may close the port, in a chain and those that it leads to, up to what surely lets it in."""
    found = []
    for rule in _passed(table, chain, knock.rule, DEPTH):
        if rule.target in CLOSES and not (rule.ours or _spares_new(rule) or _is_dockers(rule)):
            found.append(rule)
        if rule.target in FINAL and _surely(rule, knock.rule):
            return found
    return [*found, *_policy(table, chain)]


def _policy(table: Table, chain: str) -> list[Rule]:
    # Docker itself sets that of FORWARD, and lets in what is published.
    closes = chain == "INPUT" and table.policies.get(chain) in CLOSES
    return [Rule(chain, f"(policy) -j {table.policies[chain]}")] if closes else []


def _passed(table: Table, chain: str, door: Rule, depth: int) -> Iterator[Rule]:
    """The rules that a packet may meet, in its order."""
    for rule in table.rules(chain):
        if apart(rule, door):
            continue
        if rule.target == "RETURN" and _surely(rule, door):
            return
        if rule.target in table.chains and depth:
            yield from _passed(table, rule.target, door, depth - 1)
        else:
            yield rule


def _is_dockers(rule: Rule) -> bool:
    return rule.chain.startswith(DOCKER) and rule.chain != DOCKER_USER


def _spares_new(rule: Rule) -> bool:
    states = rule.matches.get("--ctstate") or rule.matches.get("--state")
    return states is not None and set(states.split(",")) <= NOT_NEW


# -- whether a packet of the one must, or cannot, match the other


def _surely(rule: Rule, door: Rule) -> bool:
    """Whether it is certain that every packet of the door matches a rule. Docker names its containers' addresses."""
    dockers = _is_dockers(rule)
    return all((dockers and option in ("-d", "! -i")) or _holds(option, rule, door) for option in rule.matches)


def _holds(option: str, rule: Rule, door: Rule) -> bool:
    value = rule.matches[option]
    match option:
        case "-p":
            return value in ("all", "tcp")
        case "-s":
            return _inside(door.matches.get("-s"), value)
        case "-i" | "-o":
            return door.matches.get(option) == value
        case "! -i" | "! -o":
            return door.matches.get(option[2:], value) != value
        case "--ctstate" | "--state":
            return "NEW" in value.split(",")
        case "--ctdir":
            return value == "ORIGINAL"
        case _ if option in PORTS:
            return not _ports_apart(rule, door) and _ports(rule) is not None
    return option in NEVER_MISSED


def _inside(address: str | None, network: str) -> bool:
    inner, outer = network_of(address), network_of(network)
    # A single address, so overlapping is lying inside.
    return inner is not None and outer is not None and inner.version == outer.version and inner.overlaps(outer)


def apart(one: Rule, other: Rule) -> bool:
    """Whether it is certain that no packet matches both rules."""
    return (
        _protocols_apart(one, other)
        or any(_networks_apart(one, other, option) for option in ("-s", "-d"))
        or any(_names_apart(one, other, option) for option in ("-i", "-o"))
        or any(_negated(one, other, option) or _negated(other, one, option) for option in ("-i", "-o"))
        or _ports_apart(one, other)
    )


def _protocols_apart(one: Rule, other: Rule) -> bool:
    mine, theirs = one.matches.get("-p", "all"), other.matches.get("-p", "all")
    return "all" not in (mine, theirs) and mine != theirs


def _networks_apart(one: Rule, other: Rule, option: str) -> bool:
    mine, theirs = network_of(one.matches.get(option)), network_of(other.matches.get(option))
    return mine is not None and theirs is not None and mine.version == theirs.version and not mine.overlaps(theirs)


def _names_apart(one: Rule, other: Rule, option: str) -> bool:
    mine, theirs = one.matches.get(option), other.matches.get(option)
    if mine is None or theirs is None or mine.endswith("+") or theirs.endswith("+"):
        return False
    return mine != theirs


def _negated(one: Rule, other: Rule, option: str) -> bool:
    said = one.matches.get(f"! {option}")
    return said is not None and said == other.matches.get(option)


def _ports_apart(one: Rule, other: Rule) -> bool:
    mine, theirs = _ports(one), _ports(other)
    return mine is not None and theirs is not None and not any(a <= d and c <= b for a, b in mine for c, d in theirs)


def _ports(rule: Rule) -> Sequence[tuple[int, int]] | None:
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
