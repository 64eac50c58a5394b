"""Gateways of an inventory: the hosts of its group `gateway`, and the endpoints behind them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from rackwright.loading.group import Unjudged
from rackwright.loading.host import InventoryHost
from rackwright.loading.peers import address_at, host_address, served_name
from rackwright.settings.allow_from import is_network
from rackwright.settings.backend import Backend, GatewayHost, Server
from rackwright.settings.gateway import CODE
from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright.settings.origin import origin_of
from rackwright.settings.problems import Problem, some
from rackwright_engines.key_path import KeyPath
from rackwright_engines.served_paths import first_parts

GROUP = "gateway"
MOST = 2
MISFIT, UNJUDGED, NAMES = "RW0244", "RW0254", "RW0275"
Served = tuple[InventoryHost, str, EndpointSettings]
"""A host, and an endpoint of it with its name."""


def with_gateways(hosts: Sequence[InventoryHost], unjudged: Iterable[Unjudged] = ()) -> list[InventoryHost]:
    """Return the hosts with the gateways of their inventory, and the gateways with their backends.

    Hosts that share their settings still do, unless they are gateways. unjudged: hosts whose settings are not valid;
    a gateway among them may ask the other hosts as before.
    """
    ways = [_gateway(host) for host in hosts if is_gateway(host.groups)]
    ways += [_unjudged(host) for host in unjudged if is_gateway(host.groups)]
    if not ways:
        return list(hosts)
    made: dict[int, HostSettings] = {}
    served = list(_served(hosts))
    return [_placed(host, tuple(ways), served, made) for host in hosts]


def _gateway(host: InventoryHost) -> GatewayHost:
    gateway = host.settings.gateway
    return GatewayHost(host.name, partial(host_address, host), gateway.close_direct, gateway.monitors)


def _unjudged(host: Unjudged) -> GatewayHost:
    """Return a gateway whose settings are not valid; a port that is closed must not open for that."""
    values = host.values.get("gateway")
    gateway = values if isinstance(values, Mapping) else {}
    found = gateway.get("monitors")
    monitors = tuple(text for text in found if is_network(text)) if isinstance(found, list | tuple) else ()
    return GatewayHost(host.name, partial(_address, host), gateway.get("close_direct") is True, monitors)


def _address(host: Unjudged) -> str:
    return address_at(host.name, host.values.get("fabric_address"), host.values)


def is_gateway(groups: Iterable[str]) -> bool:
    """Return True for a host of these groups that is a gateway."""
    return GROUP in groups


def _placed(
    host: InventoryHost, gateways: tuple[GatewayHost, ...], served: Sequence[Served], made: dict[int, HostSettings]
) -> InventoryHost:
    if is_gateway(host.groups):
        those = tuple(replace(one, is_self=one.host == host.name) for one in gateways)
        return replace(host, settings=host.settings.with_gateways(those, _backends(host, served)))
    key = id(host.settings)
    if key not in made:
        made[key] = host.settings.with_gateways(gateways)
    return replace(host, settings=made[key])


def _served(hosts: Iterable[InventoryHost]) -> Iterator[Served]:
    """Yield the endpoints that answer requests themselves, in the inventory's order."""
    for host in hosts:
        for name, endpoint in host.settings.all_endpoints.items() if not host.settings.follows else ():
            if served_name(endpoint):
                yield host, name, endpoint


def _by_model(served: Iterable[Served]) -> Mapping[str, list[Served]]:
    found: dict[str, list[Served]] = {}
    for one in served:
        found.setdefault(served_name(one[2]), []).append(one)
    return found


def _backends(gateway: InventoryHost, served: Iterable[Served]) -> tuple[Backend, ...]:
    return tuple(
        Backend(model, those[0][2].engine_kind, tuple(_server(gateway, one) for one in those))
        for model, those in _by_model(served).items()
    )


def _server(gateway: InventoryHost, served: Served) -> Server:
    host, name, endpoint = served
    resolve = partial(_reached, gateway.name, host, endpoint)
    facts = (endpoint.port, host.settings.word.port, endpoint.api_key, resolve, gateway.name)
    return Server(host.name, name, *facts, repository=endpoint.model.repository if endpoint.model else "")


def _reached(gateway: str, host: InventoryHost, endpoint: EndpointSettings) -> str:
    """Return the address at which a gateway reaches an endpoint: the one it listens on, or else that of its host."""
    listens = ipaddress.ip_address(endpoint.address)
    if not listens.is_unspecified and not endpoint.is_local:
        return str(listens)
    if host.name == gateway:
        return str(listens) if endpoint.is_local else "127.0.0.1" if listens.version == 4 else "::1"
    return host_address(host)


def problems_between(hosts: Sequence[InventoryHost]) -> Iterator[Problem]:
    """Yield what does not fit between the gateways of an inventory and the endpoints behind them."""
    gateways = [host for host in hosts if is_gateway(host.groups)]
    if not gateways:
        return
    yield from _too_many(gateways)
    yield from _differing(gateways)
    for host in gateways:
        yield from _alone(host)
    served = list(_served(hosts))
    for model, those in _by_model(served).items():
        yield from _unlike(model, those)
    yield from _names(gateways, _by_model(served))
    yield from _unreached(gateways, served)


def problems_behind(gateway: str, refused: Sequence[str]) -> Iterator[Problem]:
    """Yield that a gateway cannot be settled: the settings of hosts behind it, or beside it, are not valid."""
    if refused:
        text = f"is a gateway, and the settings of {some(refused)}, which it may lead to, are not valid"
        yield Problem(None, (), text, gateway, code=UNJUDGED)


def _problem(host: InventoryHost, path: KeyPath, text: str, code: str = MISFIT) -> Problem:
    return Problem(origin_of(host.origins, path), path, text, host.name, code=code, of_host=True)


def _too_many(gateways: Sequence[InventoryHost]) -> Iterator[Problem]:
    if len(gateways) > MOST:
        names = ", ".join(host.name for host in gateways)
        text = f"the group {GROUP} has {len(gateways)} hosts ({names}), and {MOST} are supported: take the others out"
        yield _problem(gateways[MOST], (), text)


def _differing(gateways: Sequence[InventoryHost]) -> Iterator[Problem]:
    """Yield that one gateway closes the direct ports and another does not: a host has one firewall for both."""
    if len({host.settings.gateway.close_direct for host in gateways}) > 1:
        text = "is not the same for all gateways: write it once, in group_vars/gateway.yml"
        yield _problem(gateways[-1], ("gateway", "close_direct"), text)


def _alone(host: InventoryHost) -> Iterator[Problem]:
    """Yield what is wrong with a gateway's own settings."""
    gateway = host.settings.gateway
    if gateway.lacks_certificate:
        text = "is missing, and a gateway speaks TLS: name a PEM file of the site, or write `acme:`"
        text += ", or `tls: false` and `port: 80`"
        yield _problem(host, ("gateway", "certificate"), text, CODE)
    taken = {endpoint.port: f"endpoint {name}" for name, endpoint in host.settings.all_endpoints.items()}
    taken.setdefault(host.settings.word.port, "the host's word")
    for port in gateway.ports:
        if port in taken:
            key, what = ("port", "is") if port == gateway.port else ("acme", "needs port")
            text = f"{what} {port}, the port of {taken[port]} on the same host: choose another"
            yield _problem(host, ("gateway", key), text)


def _unlike(model: str, served: Sequence[Served]) -> Iterator[Problem]:
    """Yield what differs between the servers of one model, and may not."""
    first, others = served[0], served[1:]
    for host, name, endpoint in others:
        both = f"{first[0].name} and {host.name} both serve {model}"
        if endpoint.engine_kind != first[2].engine_kind:
            text = f"{both}, by {first[2].engine_kind} and {endpoint.engine_kind}, and a gateway takes one for a model"
            text += ": take one engine for all its hosts, or give those of one another `model.mount`"
            text += ", which is another model to clients"
            yield _problem(host, _path(host, name, "engine_kind"), text)
        elif endpoint.api_key != first[2].api_key:
            text = f"{both}, and a gateway has one key for a model's engines: write the same api_key for all of them"
            yield _problem(host, _path(host, name, "api_key"), text)


def _names(gateways: Sequence[InventoryHost], by_model: Mapping[str, Sequence[Served]]) -> Iterator[Problem]:
    """Yield the names of models that a path or a host name cannot mean."""
    routes = {route for host in gateways for route in host.settings.gateway.route_by}
    by_host: dict[str, str] = {}
    for model, [(host, name, _), *_] in by_model.items():
        other = by_host.setdefault(model.lower(), model)
        if "path" in routes and model in first_parts():
            text = f"ends in {model}, which begins paths of the engines: /{model}/... would mean both; choose another"
        elif "host" in routes and other != model:
            text = f"ends in {model}, another host in {other}, and host names have no capitals: choose another"
        else:
            continue
        yield _problem(host, (*_path(host, name, "model"), "mount"), text, NAMES)


def _path(host: InventoryHost, endpoint: str, key: str) -> KeyPath:
    return ("endpoints", endpoint, key) if key in host.settings.endpoints.get(endpoint, {}) else (key,)


def _unreached(gateways: Sequence[InventoryHost], served: Iterable[Served]) -> Iterator[Problem]:
    for host, name, endpoint in served:
        others = [gateway.name for gateway in gateways if gateway.name != host.name]
        if endpoint.is_local and others:
            text = f"endpoint {name} listens on {endpoint.address} alone, so that {some(others)} cannot reach it"
            yield _problem(host, _path(host, name, "bind"), f"{text}: set `bind`, or `allow_from`")
