"""What endpoints ask of the filter table: the seeds' rules for containers, and `allow_from`. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rackwright.iptables import TAG, Rule, Table
from rackwright.settings.model import EndpointSettings

FAMILIES = {"iptables": 4, "ip6tables": 6}
"""Command and IP version of both families."""
INPUT = "INPUT"
DOCKER_USER = "DOCKER-USER"
FORWARD = "FORWARD"


@dataclass(frozen=True)
class Port:
    """One endpoint's port in one family."""

    endpoint: str
    settings: EndpointSettings
    version: int
    bridge: str
    chain: str
    """Where what Docker forwards is decided."""

    def rule(self, chain: str, purpose: str, verdict: str, *matches: str) -> Rule:
        """A rule of ours, in the words of iptables-save."""
        comment = f'-m comment --comment "{TAG}{self.endpoint}:{purpose}"'
        return Rule(chain, " ".join([*filter(None, matches), comment, f"-j {verdict}"]))

    def input(self) -> Iterator[Rule]:
        """Containers may reach the port, as in the seeds; with `allow_from` the host and the networks, nobody else."""
        port = f"-p tcp -m tcp --dport {self.settings.port}"
        yield self.rule(INPUT, "containers", "ACCEPT", f"-i {self.bridge}", port)
        if not self.filtered:
            return
        to = f"-d {self.address}" if self.address else ""
        yield self.rule(INPUT, "host", "ACCEPT", to, "-i lo", port)
        for network in self.networks():
            yield self.rule(INPUT, "allowed", "ACCEPT", _from(network), to, port)
        yield self.rule(INPUT, "refused", "DROP", to, port)

    def forwarded(self) -> Iterator[Rule]:
        """The same for what Docker forwards to its bridge; the port is the one that the client asked for."""
        if not self.filtered:
            return
        asked = f"--ctorigdst {self.address} " if self.address else ""
        into = f"-o {self.bridge} -p tcp"
        wanted = f"-m conntrack {asked}--ctorigdstport {self.settings.port} --ctdir ORIGINAL"
        for network in self.networks():
            yield self.rule(self.chain, "allowed", "ACCEPT", _from(network), into, wanted)
        yield self.rule(self.chain, "refused", "DROP", into, wanted)
        if self.address:
            yield self.rule(self.chain, "routed", "DROP", into, self._past_publishing())

    def _past_publishing(self) -> str:
        """A neighbour with a route to the bridge's subnet asks for the container's own address."""
        return f"-m conntrack ! --ctstate DNAT --ctorigdstport {self.settings.port} --ctdir ORIGINAL"

    @property
    def filtered(self) -> bool:
        """Whether `allow_from` has anything to decide in this family."""
        return is_filtered(self.settings) and speaks(self.settings.address, self.version)

    @property
    def address(self) -> str:
        """The one address that the endpoint answers on; empty when it answers on all."""
        own = _ip(self.settings.address)
        return "" if own is None or own.is_unspecified else str(own)

    def networks(self) -> list[str]:
        """The allowed networks of this family, each once."""
        found = (ipaddress.ip_network(text) for text in self.settings.allow_from)
        return list(dict.fromkeys(str(network) for network in found if network.version == self.version))


Listeners = Sequence[tuple[str, EndpointSettings]]
"""Endpoints by name with where they listen; one that is about to move is there twice."""


def endpoint_rules(endpoints: Listeners, version: int, bridge: str, chain: str = DOCKER_USER) -> tuple[Rule, ...]:
    """All rules of one family in their order: INPUT first, then what Docker forwards.

    endpoints: settings with names. version: 4 or 6. bridge: Docker's default bridge. chain: FORWARD where Docker
    filters without a chain for others; it is left alone then, unless some `allow_from` must be kept.
    """
    ports = [Port(name, settings, version, bridge, chain) for name, settings in endpoints]
    rules = [rule for port in ports for rule in port.input()]
    published = [port for port in ports if port.settings.network == "bridge"]
    if any(chain == DOCKER_USER or port.filtered for port in published):
        containers = f'-m comment --comment "{TAG}containers"'
        rules.append(Rule(chain, f"-i {bridge} {containers} -j ACCEPT"))
    return (*rules, *(rule for port in published for rule in port.forwarded()))


def forwarding_chain(table: Table) -> str:
    """Engines before 27 may filter forwarded IPv6 without DOCKER-USER: then only FORWARD itself is left."""
    return FORWARD if table.has("DOCKER") and not table.has(DOCKER_USER) else DOCKER_USER


def is_filtered(endpoint: EndpointSettings) -> bool:
    """Whether `allow_from` decides who reaches an endpoint; on a loopback address nobody from outside does."""
    return bool(endpoint.allow_from) and not endpoint.is_local


def speaks(address: str, version: int) -> bool:
    """Whether what listens on an address may be reached by an IP version; on all addresses it is by both."""
    own = _ip(address)
    return own is None or own.is_unspecified or own.version == version


def filtered_in_docker_user(endpoints: Mapping[str, EndpointSettings]) -> list[str]:
    """Names of the endpoints whose `allow_from` needs Docker's chain."""
    return [name for name, own in endpoints.items() if own.network == "bridge" and is_filtered(own)]


def warnings(endpoints: Mapping[str, EndpointSettings]) -> Iterable[str]:
    """Sentences about ports that are open to all, and about networks that can never get in."""
    for name, own in endpoints.items():
        if own.is_open:
            yield f"port {own.port} of endpoint {name} is open to every network that reaches this host: set allow_from"
        if own.allow_from and own.is_local:
            yield f"allow_from of endpoint {name} lets nobody in, as it answers on {own.address} only: change bind"


def _from(network: str) -> str:
    return "" if network.endswith("/0") else f"-s {network}"


def _ip(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(address)
    except ValueError:
        return None
