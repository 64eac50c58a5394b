"""Hosts of an inventory that serve the same model: they may ask each other whether their endpoints may be used."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from rackwright.loading.group import resolved_address
from rackwright.loading.host import InventoryHost
from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright.settings.peer_host import PeerHost
from rackwright.settings.ssh.known_hosts import place_of

ByModel = dict[str, tuple[PeerHost, ...]]


def with_peers(hosts: Sequence[InventoryHost]) -> list[InventoryHost]:
    """Return the hosts with their peers; hosts that share their settings still do."""
    found: dict[str, list[PeerHost]] = {}
    shared: dict[int, _Shared] = {}
    for host in hosts:
        if id(host.settings) not in shared:
            shared[id(host.settings)] = _Shared.of(host.settings)
        peer = shared[id(host.settings)].peer(host)
        for model in shared[id(host.settings)].models:
            found.setdefault(model, []).append(peer)
    several = {model: tuple(peers) for model, peers in found.items() if peers[1:]}
    made: dict[int, HostSettings] = {}
    return [_placed(host, several, made) for host in hosts] if several else list(hosts)


def _placed(host: InventoryHost, several: ByModel, made: dict[int, HostSettings]) -> InventoryHost:
    key = id(host.settings)
    if key not in made:
        by_endpoint = {name: several[model] for name, model in _by_endpoint(host.settings) if model in several}
        made[key] = host.settings.with_peers(by_endpoint)
    return replace(host, settings=made[key])


def _by_endpoint(settings: HostSettings) -> Iterator[tuple[str, str]]:
    for name, endpoint in settings.all_endpoints.items():
        if model := served_name(endpoint):
            yield name, model


def served_name(endpoint: EndpointSettings) -> str:
    """Return the name by which clients ask for an endpoint's model; empty when it has none."""
    return PurePosixPath(endpoint.model.mount).name if endpoint.model else ""


@dataclass(frozen=True)
class _Shared:
    """The values of a peer that all hosts with the same settings share: a thousand of them are looked up once."""

    models: tuple[str, ...]
    word_port: int
    follows: bool

    @classmethod
    def of(cls, settings: HostSettings) -> _Shared:
        models = dict.fromkeys(model for _, model in _by_endpoint(settings))
        return cls(tuple(models), settings.word.port, settings.follows)

    def peer(self, host: InventoryHost) -> PeerHost:
        return PeerHost(host.name, self.word_port, self.follows, partial(host_address, host))


def host_address(host: InventoryHost) -> str:
    """Return a host's address; an IPv6 one only where it is written as such."""
    return address_at(host.name, host.settings.fabric_address, host.data)


def address_at(name: str, fabric_address: object, data: Mapping[str, Any]) -> str:
    """Return the address of a host of this name. fabric_address: as its settings say. data: its variables."""
    given = str(fabric_address or data.get("ssh_hostname") or name)
    try:
        return str(ipaddress.ip_address(given))
    except ValueError:
        return resolved_address(place_of(name, data).address)
