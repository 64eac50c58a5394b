"""Rules of the filter table for endpoints: the seeds' rules for containers, and a port's allowed networks. Pure.

These rules only accept, and come after all rules that close: they keep no client out, which is the drops' purpose,
and they open nothing that another tool has closed.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rackwright.concerns.firewall.rule_table import TAG, Rule
from rackwright.plan.reach import unreached_text
from rackwright.settings.group import Group
from rackwright.settings.host_settings import EndpointSettings

FAMILIES = {"iptables": 4, "ip6tables": 6}
"""Command and IP version of both families."""
INPUT = "INPUT"
DOCKER_USER = "DOCKER-USER"
EVERYBODY = {4: "0.0.0.0/0", 6: "::/0"}

Listeners = Sequence[tuple[str, EndpointSettings]]
"""Endpoints by name with their listen addresses; one that is about to move is listed twice."""


@dataclass(frozen=True)
class Proxied:
    """Docker's handling of external clients before they reach a published port.

    Translated traffic never passes INPUT. Other traffic ends in its proxy: IPv6 for containers without an IPv6 address.
    """

    translated: frozenset[int] = frozenset({4})
    """IP versions whose published ports Docker's rules forward to the container."""
    over_ipv6: frozenset[int] = frozenset()
    """Ports that a container publishes on IPv6 now, whatever its endpoint's address is."""

    def needs_input(self, one: EndpointSettings, version: int) -> bool:
        """Return True if Docker's proxy answers clients of this version for an endpoint on the bridge."""
        published = ipaddress.ip_address(one.address).version == version or (
            version == 6 and one.port in self.over_ipv6
        )
        return published and version not in self.translated


BY_DEFAULT = Proxied()
"""A Docker Engine that makes its rules, and a bridge without IPv6."""


@dataclass(frozen=True)
class Port:
    """One endpoint's port in one family."""

    endpoint: str
    settings: EndpointSettings
    version: int
    bridge: str
    proxied: Proxied

    def rules(self) -> Iterator[Rule]:
        """Yield rules that let containers reach the port, as in the seeds; the host and the allowed networks too."""
        port = f"-p tcp -m tcp --dport {self.settings.port}"
        yield self._accept("containers", f"-i {self.bridge}", port)
        if self.settings.is_local or not speaks(self.settings.address, self.version):
            return
        address = single_address(self.settings)
        to = f"-d {address}" if address else ""
        yield self._accept("host", to, "-i lo", port)
        if not self._is_answered:
            return
        for network in networks_of(self.settings, self.version):
            yield self._accept("allowed", "" if network.endswith("/0") else f"-s {network}", to, port)

    @property
    def _is_answered(self) -> bool:
        """True if INPUT leads to the endpoint's listener; it is not opened for other processes that listen there."""
        if self.settings.network == "bridge":
            return self.proxied.needs_input(self.settings, self.version)
        address = ipaddress.ip_address(self.settings.address)
        return address.version == self.version or address == ipaddress.ip_address("::")

    def _accept(self, purpose: str, *matches: str) -> Rule:
        """Return a rule of Rackwright's, in the format of iptables-save."""
        comment = f'-m comment --comment "{TAG}{self.endpoint}:{purpose}"'
        return Rule(INPUT, " ".join([*filter(None, matches), comment, "-j ACCEPT"]))


def endpoint_rules(endpoints: Listeners, version: int, bridge: str, proxied: Proxied = BY_DEFAULT) -> tuple[Rule, ...]:
    """Return all rules of one family in their order.

    endpoints: settings with names. version: 4 or 6. bridge: Docker's default bridge.
    """
    rules = [rule for name, one in endpoints for rule in Port(name, one, version, bridge, proxied).rules()]
    if any(one.network == "bridge" for _, one in endpoints):
        rules.append(Rule(DOCKER_USER, f'-i {bridge} -m comment --comment "{TAG}containers" -j ACCEPT'))
    return tuple(rules)


def member_rules(group: Group | None, version: int) -> tuple[Rule, ...]:
    """Return rules that accept all traffic from the group's other members: their engine chooses ports freely."""
    if group is None or version != FAMILIES["iptables"]:
        return ()
    comment = f'-m comment --comment "{TAG}{group.endpoint}:member"'
    others = (member.address for member in group.members if member != group.member)
    return tuple(Rule(INPUT, f"-s {other}/32 -d {group.member.address}/32 {comment} -j ACCEPT") for other in others)


def networks_of(endpoint: EndpointSettings, version: int) -> list[str]:
    """Return the networks of one family that may reach an endpoint, each once; without any, no client of it may."""
    if endpoint.is_open:
        return [EVERYBODY[version]]
    found = (ipaddress.ip_network(text) for text in endpoint.networks)
    networks: list[Any] = [network for network in found if network.version == version]
    return [str(network) for network in ipaddress.collapse_addresses(networks)]


def speaks(address: str, version: int) -> bool:
    """Return True if a listener on an address is reachable by an IP version; on all addresses both reach it."""
    listener = ipaddress.ip_address(address)
    return listener.is_unspecified or listener.version == version


def single_address(endpoint: EndpointSettings) -> str:
    """Return the single address that an endpoint answers on; empty when it answers on all."""
    address = ipaddress.ip_address(endpoint.address)
    return "" if address.is_unspecified else str(address)


def warnings(endpoints: Mapping[str, EndpointSettings]) -> Iterable[str]:
    """Yield warnings about ports that are open to all, and about networks that can never get in."""
    for name, endpoint in endpoints.items():
        if endpoint.is_open:
            yield f"port {endpoint.port} of endpoint {name} is open to all who reach this host (allow_from: any)"
        if endpoint.is_closed_by_hand and endpoint.is_local:
            only = f"it answers on {endpoint.address} only"
            yield f"allow_from of endpoint {name} lets no client in, as {only}: change bind"
        if unreached := unreached_text(endpoint):
            yield f"endpoint {name}: {unreached}"
