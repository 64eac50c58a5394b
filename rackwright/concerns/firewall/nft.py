"""Tables of nftables that other tools made, and that may close a port: from `nft list ruleset`. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from rackwright.plan.reading import whole_number

OURS = "inet rackwright"
IPTABLES = {f"{family} {name}" for family in ("ip", "ip6") for name in ("filter", "nat", "raw", "mangle", "security")}
"""Tables that iptables shows itself."""
DOCKERS = frozenset({"ip docker-bridges", "ip6 docker-bridges"})
NOT_FOREIGN = frozenset({OURS, *IPTABLES, *DOCKERS})
HOOK = re.compile(r"\bhook (\w+)")
JUMP = re.compile(r"\b(?:jump|goto) ([^\s,}]+)")
CLOSES = re.compile(r"\b(?:drop|reject)\b")
NOT_NEW = re.compile(r"\bct state \{?\s*(?:invalid|established|related|untracked|[,\s])+\}? ")
QUOTED = re.compile(r'"[^"]*"')
PORT = re.compile(r"\b(tcp|udp|sctp|dccp|th) dport (\d+) ")


@dataclass(frozen=True)
class Chain:
    """One chain: the hook that it hangs on, if any, and its lines without comments and names of interfaces."""

    hook: str
    lines: tuple[str, ...]

    @property
    def leads_to(self) -> frozenset[str]:
        """Chains that it jumps to."""
        return frozenset(JUMP.findall("\n".join(self.lines)))

    def may_close(self, port: int) -> bool:
        """Whether a new connection to the port may end in it, by a rule or by its policy."""
        return any(_may_close(line, port) for line in self.lines)


def closing_tables(ruleset: str, hooks: Collection[str], port: int) -> list[str]:
    """Foreign tables, as `inet firewalld`, in which a new TCP connection to the port may end on one of the hooks."""
    return [
        name
        for name, chains in _tables(ruleset)
        if name not in NOT_FOREIGN and any(chains[own].may_close(port) for own in _reached(chains, hooks))
    ]


def _reached(chains: Mapping[str, Chain], hooks: Collection[str]) -> set[str]:
    found = {name for name, chain in chains.items() if chain.hook in hooks}
    coming = set(found)
    while coming:
        coming = {name for own in coming for name in chains[own].leads_to if name in chains} - found
        found |= coming
    return found


def _may_close(line: str, port: int) -> bool:
    if not CLOSES.search(line) or NOT_NEW.search(f"{line} "):
        return False
    said = PORT.search(line)
    return said is None or (said[1] in ("tcp", "th") and whole_number(said[2]) == port)


def _tables(ruleset: str) -> Iterator[tuple[str, dict[str, Chain]]]:
    """nft indents what stands in a table by one tab, and what stands in a chain by two."""
    for block in re.split(r"^(?=table )", ruleset, flags=re.MULTILINE):
        head = re.match(r"table (\S+ \S+) \{", block)
        if head:
            chains = re.findall(r"^\tchain (\S+) \{\n(.*?)^\t\}", block, re.MULTILINE | re.DOTALL)
            yield head[1], {name: _chain(body) for name, body in chains}


def _chain(body: str) -> Chain:
    lines = tuple(QUOTED.sub('""', line).strip() for line in body.splitlines())
    hook = next((found[1] for line in lines if (found := HOOK.search(line))), "")
    return Chain(hook, lines)
