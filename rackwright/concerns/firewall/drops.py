"""What keeps everybody else out: drops before any address is translated, in a table that other tools do not flush.

ufw, firewalld and iptables-restore write their own tables and iptables' filter table. Where nft is there, ours is the
table `inet rackwright`; elsewhere a chain of our own in iptables' mangle table, which is asked at the same moment, and
tells replies from requests as the raw table cannot. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rackwright.concerns.firewall.iptables import TAG
from rackwright.concerns.firewall.rules import EVERYBODY, FAMILIES, Listeners, networks_of, single_address, speaks
from rackwright.settings.group import Group
from rackwright.settings.model import EndpointSettings

TABLE = "inet rackwright"
CHAIN = "RACKWRIGHT"
EPHEMERAL = (32768, 60999)
"""Ports from which Linux takes one when a program asks for any, as the members' engines do (ip_local_port_range)."""
Means = Literal["nft", "mangle"]
Drops = Mapping[str, str]
"""Text by the command that takes it: nft; or iptables and ip6tables."""


@dataclass(frozen=True)
class Bridge:
    """Docker's default bridge."""

    name: str = "docker0"
    subnets: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """Its networks by IP version: a neighbour may have a route to them, past the published port."""


def drops(
    endpoints: Listeners,
    means: Means,
    bridge: Bridge,
    left: Collection[str] = (),
    kept: Drops | None = None,
    group: Group | None = None,
) -> Drops:
    """The texts that put all drops into the kernel, in one step a command, whatever is there of ours now.

    endpoints: where they listen. left: endpoints that the settings no longer have and that are still there. kept: the
    texts from before, whose lines of these are carried over. group: the hosts that serve an endpoint together.
    """
    old = {command: _lines_of(left, text) for command, text in (kept or {}).items()}
    if means == "nft":
        lines = [*_nft_lines(endpoints, bridge.name), *_nft_between(group), *old.get("nft", ())]
        return {"nft": _nft(lines, bridge.name)}
    return {
        command: _mangle(
            [*_mangle_lines(endpoints, version, bridge), *_mangle_between(group, version), *old.get(command, ())],
            bridge.name,
        )
        for command, version in FAMILIES.items()
    }


def _lines_of(names: Collection[str], text: str) -> list[str]:
    found = [(re.search(rf'"{TAG}([^":]+):', line), line.strip()) for line in text.splitlines()]
    return [line for match, line in found if match and match[1] in names]


def _ports(endpoints: Listeners, version: int) -> Iterator[tuple[str, EndpointSettings, list[str]]]:
    """Endpoints that somebody of this IP version must not reach, with the networks that may."""
    for name, one in endpoints:
        networks = networks_of(one, version)
        if not one.is_local and speaks(one.address, version) and EVERYBODY[version] not in networks:
            yield name, one, networks


# -- nft


def _nft_lines(endpoints: Listeners, bridge: str) -> Iterator[str]:
    for version, family in ((4, "ip"), (6, "ip6")):
        for name, one, networks in _ports(endpoints, version):
            source = f"{family} saddr != {{ {', '.join(networks)} }}" if networks else f"meta nfproto ipv{version}"
            address = single_address(one)
            to = f"{family} daddr {address}" if address else "fib daddr type local"
            tail = f'tcp dport {one.port} {source} drop comment "{TAG}{name}:refused"'
            yield f"{to} {tail}"
            if one.network == "bridge":
                yield f'fib daddr oifname "{bridge}" {tail}'


def _nft_between(group: Group | None) -> Iterator[str]:
    """What comes to a port that a member's engine took for itself is dropped, but from other members."""
    if group is not None:
        others = ", ".join(member.address for member in group.members)
        for to, (first, last) in _taken(group, "ip daddr {}", "fib daddr type local"):
            ports = f"{to} tcp dport {first}-{last}"
            yield f'{ports} ip saddr != {{ {others} }} drop comment "{TAG}{group.endpoint}:refused"'
        if group.ports:
            # Open MPI listens there by IPv6 too, by which no member comes.
            first, last = group.ports
            local = f"meta nfproto ipv6 fib daddr type local tcp dport {first}-{last}"
            yield f'{local} drop comment "{TAG}{group.endpoint}:refused"'


def _taken(group: Group, own: str, all_: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Ports that an engine takes: ephemeral ones at the member's own address, its configured range at every address.

    own, all_: how a rule names these addresses.
    """
    yield own.format(group.own.address), EPHEMERAL
    if group.ports:
        yield all_, group.ports


def _nft(lines: Sequence[str], bridge: str) -> str:
    """The table as nft reads it; without lines it only goes."""
    text = f"table {TABLE} {{\n}}\ndelete table {TABLE}\n"
    if not lines:
        return text
    body = "\n".join(f"    {line}" for line in _first(lines, bridge))
    head = "type filter hook prerouting priority -150; policy accept;"
    return f"{text}table {TABLE} {{\n  chain prerouting {{\n    {head}\n{body}\n  }}\n}}\n"


def _first(lines: Sequence[str], bridge: str) -> list[str]:
    """Containers and the host itself come in, and replies to what the host has asked."""
    return [f'iifname {{ "lo", "{bridge}" }} accept', "ct direction reply accept", *sorted(set(lines))]


# -- iptables' mangle table


def _mangle_lines(endpoints: Listeners, version: int, bridge: Bridge) -> Iterator[str]:
    for name, one, networks in _ports(endpoints, version):
        port = f"-p tcp -m tcp --dport {one.port}"
        address = single_address(one)
        to = f"-d {address} " if address else "-m addrtype --dst-type LOCAL "
        for network in networks:
            yield f"-A {CHAIN} -s {network} {port} {_comment(name, 'allowed')} -j RETURN"
        yield f"-A {CHAIN} {to}{port} {_comment(name, 'refused')} -j DROP"
        for subnet in bridge.subnets.get(version, ()) if one.network == "bridge" else ():
            yield f"-A {CHAIN} -d {subnet} {port} {_comment(name, 'refused')} -j DROP"


def _mangle_between(group: Group | None, version: int) -> Iterator[str]:
    if group is None:
        return
    if version != FAMILIES["iptables"]:
        yield from _mangle_ipv6(group)
        return
    for to, (first, last) in _taken(group, "-d {}/32", "-m addrtype --dst-type LOCAL"):
        port = f"-p tcp -m tcp --dport {first}:{last}"
        for member in group.members:
            yield f"-A {CHAIN} -s {member.address}/32 {port} {_comment(group.endpoint, 'allowed')} -j RETURN"
        yield f"-A {CHAIN} {to} {port} {_comment(group.endpoint, 'refused')} -j DROP"


def _mangle_ipv6(group: Group) -> Iterator[str]:
    if group.ports:
        port = f"-m addrtype --dst-type LOCAL -p tcp -m tcp --dport {group.ports[0]}:{group.ports[1]}"
        yield f"-A {CHAIN} {port} {_comment(group.endpoint, 'refused')} -j DROP"


def _comment(endpoint: str, purpose: str) -> str:
    return f'-m comment --comment "{TAG}{endpoint}:{purpose}"'


def _mangle(lines: Sequence[str], bridge: str) -> str:
    """Lines for iptables-restore --noflush, which empties the chain by naming it; none when nothing is dropped."""
    if not lines:
        return ""
    inside = [f"-A {CHAIN} -i {name} -j RETURN" for name in ("lo", bridge)]
    replies = f"-A {CHAIN} -m conntrack --ctdir REPLY -j RETURN"
    jump = f'-I PREROUTING 1 -m comment --comment "{TAG}drops" -j {CHAIN}'
    # Who may come in is asked first; two endpoints never share a port.
    own = sorted(set(lines), key=lambda line: (line.endswith("DROP"), line))
    return "\n".join([f":{CHAIN} - [0:0]", jump, *inside, replies, *own, ""])
