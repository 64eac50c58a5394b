"""Drops of clients that are not allowed, before any address is translated, in nft's table `inet rackwright`.

ufw, firewalld and iptables-restore write their own tables and iptables' filter table, and do not flush this one. Pure.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from rackwright.concerns.firewall.iptables_rules import EVERYBODY, Listeners, networks_of, single_address, speaks
from rackwright.concerns.firewall.rule_table import TAG
from rackwright.settings.group import Group
from rackwright.settings.host_settings import EndpointSettings

TABLE = "inet rackwright"
NOTHING = f"table {TABLE} {{\n}}\ndelete table {TABLE}\n"
"""The text that removes the table, also where it is missing."""
EPHEMERAL = (32768, 60999)
"""Ports that Linux assigns when a program asks for any, as the members' engines do (ip_local_port_range)."""
LOCAL = "fib daddr type local"


def drops(endpoints: Listeners, bridge: str, retained: Sequence[str] = (), group: Group | None = None) -> str:
    """Return the text that puts all drops into the kernel in one step, whatever the table contains now.

    endpoints: where they listen. bridge: Docker's default bridge. retained: lines of endpoints that the settings no
    longer have and that still run. group: the hosts that serve an endpoint together.
    """
    return _table([*_lines(endpoints, bridge), *_between(group), *retained], bridge)


def count(text: str) -> int:
    """Return how many drops a text has."""
    return text.count(':refused"')


def lines_of(names: Collection[str], text: str) -> list[str]:
    """Return the lines of these endpoints."""
    found = [(re.search(rf'"{TAG}([^":]+):', row), row.strip()) for row in text.splitlines()]
    return [row for match, row in found if match and match[1] in names]


def refusing(endpoint: str, to: str, port: str, version: int, networks: Sequence[str]) -> str:
    """Return the line that drops what other networks of an IP version send to a port.

    to: the addresses, as nft matches them.
    """
    family = "ip" if version == 4 else "ip6"
    source = f"{family} saddr != {{ {', '.join(networks)} }}" if networks else f"meta nfproto ipv{version}"
    return f'{to} tcp dport {port} {source} drop comment "{TAG}{endpoint}:refused"'


@lru_cache(64)
def word_drops(name: str, port: int, askers: tuple[str, ...]) -> tuple[str, ...]:
    """Return the lines that close the port of the host's word to all but some addresses and networks.

    Cached: the peers of a fleet are the same for each of its hosts.
    """
    networks = [ipaddress.ip_network(text) for text in askers]
    found = ((version, _collapsed(networks, version)) for version in (4, 6))
    return tuple(
        refusing(name, LOCAL, str(port), version, those) for version, those in found if EVERYBODY[version] not in those
    )


def _collapsed(networks: Iterable[Any], version: int) -> list[str]:
    return [str(one) for one in ipaddress.collapse_addresses(one for one in networks if one.version == version)]


def _ports(endpoints: Listeners, version: int) -> Iterator[tuple[str, EndpointSettings, list[str]]]:
    """Yield the endpoints that are not open to all clients of this IP version, with their allowed networks."""
    for name, endpoint in endpoints:
        networks = networks_of(endpoint, version)
        if not endpoint.is_local and speaks(endpoint.address, version) and EVERYBODY[version] not in networks:
            yield name, endpoint, networks


def _lines(endpoints: Listeners, bridge: str) -> Iterator[str]:
    for version, family in ((4, "ip"), (6, "ip6")):
        for name, one, networks in _ports(endpoints, version):
            address = single_address(one)
            yield refusing(name, f"{family} daddr {address}" if address else LOCAL, str(one.port), version, networks)
            if one.network == "bridge":
                # A machine of the same network may have a route to the bridge's networks, past the published port.
                yield refusing(name, f'fib daddr oifname "{bridge}"', str(one.port), version, networks)


def _between(group: Group | None) -> Iterator[str]:
    """Yield rules that drop traffic to ports that a member's engine opens, except from other members."""
    if group is not None:
        others = [member.address for member in group.members]
        yield refusing(group.endpoint, f"ip daddr {group.member.address}", "{}-{}".format(*EPHEMERAL), 4, others)
        if group.ports:
            ports = "{}-{}".format(*group.ports)
            yield refusing(group.endpoint, LOCAL, ports, 4, others)
            # Open MPI listens there by IPv6 too, which no member uses.
            local = f"meta nfproto ipv6 {LOCAL} tcp dport {ports}"
            yield f'{local} drop comment "{TAG}{group.endpoint}:refused"'


def _table(lines: Sequence[str], bridge: str) -> str:
    """Return the table as nft reads it; without lines it is only removed."""
    if not lines:
        return NOTHING
    body = "\n".join(f"    {row}" for row in _first(lines, bridge))
    head = "type filter hook prerouting priority -150; policy accept;"
    return f"{NOTHING}table {TABLE} {{\n  chain prerouting {{\n    {head}\n{body}\n  }}\n}}\n"


def _first(lines: Sequence[str], bridge: str) -> list[str]:
    """Return lines that accept containers, the host itself, and replies to the host's connections."""
    return [f'iifname {{ "lo", "{bridge}" }} accept', "ct direction reply accept", *sorted(set(lines))]
