"""Hosts that serve one endpoint together: by `hosts`, in the inventory's order, and what does not fit between them."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from rackwright.addresses import is_loopback
from rackwright.engines.launch import launch_ports
from rackwright.loading.host import InventoryHost
from rackwright.settings.group import Group, GroupMember
from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright.settings.origin import origin_of
from rackwright.settings.problems import InvalidSettingsError, Problem
from rackwright.settings.ssh.known_hosts import place_of
from rackwright_engines.key_path import KeyPath
from rackwright_engines.nearest import nearest

Hosts = Sequence[InventoryHost]
MISFIT, LOST = "RW0230", "RW0231"
LLM = str(HostSettings.model_fields["endpoint_name"].default)


@dataclass(frozen=True)
class Unjudged:
    """A host whose settings are not valid, with its values as they stand."""

    name: str
    groups: tuple[str, ...]
    values: Mapping[str, Any]

    @property
    def wanted(self) -> tuple[str, tuple[str, ...] | int] | None:
        """The endpoint that it was meant to serve with others, and which they are; None where nothing says so."""
        endpoints, hosts = self.values.get("endpoints"), self.values.get("hosts")
        named = endpoints if isinstance(endpoints, Mapping) and endpoints else {self.values.get("endpoint_name"): {}}
        found = {
            str(name or LLM): keys.get("hosts", hosts) for name, keys in named.items() if isinstance(keys, Mapping)
        }
        return next(((name, _hosts(wanted)) for name, wanted in found.items() if _hosts(wanted) != 1), None)


def _hosts(wanted: object) -> tuple[str, ...] | int:
    return tuple(map(str, wanted)) if isinstance(wanted, list | tuple) else wanted if isinstance(wanted, int) else 1


@dataclass(frozen=True)
class _Seat:
    """Groups of hosts, by endpoint."""

    name: str
    groups: tuple[str, ...]
    endpoint: str
    hosts: tuple[str, ...] | int

    @property
    def size(self) -> int:
        return self.hosts if isinstance(self.hosts, int) else len(self.hosts)


@dataclass
class Grouping:
    """The hosts that are right, each with its place among those that serve its endpoint with it, and the others."""

    hosts: list[InventoryHost]
    held: dict[str, list[str]]
    """By host that is right itself, those that serve its endpoint with it and are not."""


def grouped(hosts: Hosts, unjudged: Sequence[Unjudged], refused: dict[str, list[Problem]]) -> Grouping:
    """Place hosts in their groups.

    hosts: those that are right alone; unjudged: the others. refused: what is wrong with each host of the
    inventory, in its order; what does not fit between hosts is added.
    """
    by_name = {host.name: host for host in hosts if _shared(host)}
    held: dict[str, list[str]] = {}
    for host in by_name.values():
        refused[host.name] += _alone(host, list(refused))
        for other, problem in _in_another(host, hosts):
            refused[host.name].append(problem)
            held.setdefault(other, []).append(host.name)
    placed: dict[str, InventoryHost] = {}
    for names in _sets([_seat(host) for host in by_name.values()], unjudged, list(refused)):
        if not any(refused[name] for name in names):
            for problem in _between([by_name[name] for name in names]):
                refused[problem.host].append(problem)
        wrong = [name for name in names if refused[name]]
        for name in names if wrong else ():
            held.setdefault(name, []).extend(wrong)
        if not wrong:
            placed |= {host.name: host for host in _placed([by_name[name] for name in names])}
    held = {name: others for name, others in held.items() if not refused[name]}
    right = [placed.get(host.name, host) for host in hosts if not refused[host.name] and host.name not in held]
    return Grouping(right, held)


def _seat(host: InventoryHost) -> _Seat:
    name, endpoint = _group_endpoint(host)
    return _Seat(host.name, host.groups, name, endpoint.hosts)


def _shared(host: InventoryHost) -> tuple[str, EndpointSettings] | None:
    """Return the endpoint that a host serves with others, if there is one."""
    return next(((name, endpoint) for name, endpoint in host.settings.all_endpoints.items() if endpoint.size > 1), None)


def _group_endpoint(host: InventoryHost) -> tuple[str, EndpointSettings]:
    found = _shared(host)
    assert found is not None
    return found


def _problem(host: InventoryHost, key: str, text: str, code: str = MISFIT) -> Problem:
    path = _path(host, key)
    return Problem(origin_of(host.origins, path), path, text, host.name, code=code, of_host=True)


def _path(host: InventoryHost, key: str) -> KeyPath:
    """Return where a key of the host's endpoint stands: below `endpoints`, or at the top level."""
    name, _ = _group_endpoint(host)
    return ("endpoints", name, key) if key in host.settings.endpoints.get(name, {}) else (key,)


def _alone(host: InventoryHost, names: Sequence[str]) -> Iterator[Problem]:
    """Yield what is wrong with one host's own settings. names: all hosts of the inventory."""
    name, endpoint = _group_endpoint(host)
    others = [other for other in host.settings.all_endpoints if other != name]
    if others:
        text = f"the hosts of {name} serve one endpoint together, and {host.name} also serves {', '.join(others)}"
        yield _problem(host, "hosts", text)
    if isinstance(endpoint.hosts, int):
        return
    for missing in (one for one in endpoint.hosts if one not in names):
        yield _problem(host, "hosts", f"{missing} is not a host of this inventory{nearest(missing, names)}")
    if host.name not in endpoint.hosts:
        yield _problem(host, "hosts", f"{host.name} has this list and is not in it: set it for these hosts alone")


def _in_another(host: InventoryHost, hosts: Hosts) -> Iterator[tuple[str, Problem]]:
    """Yield the hosts of this list that have another list: a host serves in one endpoint."""
    names = _group_endpoint(host)[1].hosts
    if isinstance(names, int):
        return
    for other in hosts:
        theirs = _shared(other)
        if other.name not in names or theirs is None or theirs[1].hosts == names or isinstance(theirs[1].hosts, int):
            continue
        both = f"{other.name} is in two endpoints: {host.name} says {', '.join(names)}, and {other.name} itself"
        text = f"{both} {', '.join(theirs[1].hosts)}; write one list, the same for all of them"
        yield other.name, _problem(host, "hosts", text)


def _sets(seats: Sequence[_Seat], unjudged: Sequence[Unjudged], order: Sequence[str]) -> Iterator[list[str]]:
    """Yield the hosts of each endpoint, in the inventory's order; a number takes neighbours of the same groups.

    A host that is not right and says nothing of others may be a member of any such endpoint of its groups.
    """
    wanted = [(one, one.wanted) for one in unjudged]
    every = [*seats, *(_Seat(one.name, one.groups, *endpoint) for one, endpoint in wanted if endpoint)]
    by: dict[tuple[str, tuple[str, ...] | int, tuple[str, ...]], list[_Seat]] = {}
    for seat in sorted(every, key=lambda seat: order.index(seat.name)):
        numbered = isinstance(seat.hosts, int)
        by.setdefault((seat.endpoint, seat.hosts, seat.groups if numbered else ()), []).append(seat)
    for (_, hosts, groups), members in by.items():
        names = [seat.name for seat in members]
        if isinstance(hosts, tuple):
            yield [*names, *(one.name for one, _ in wanted if one.name in hosts and one.name not in names)]
        elif anywhere := [one.name for one, endpoint in wanted if endpoint is None and one.groups == groups]:
            yield [*names, *anywhere]
        else:
            size = max(members[0].size, 1)
            yield from (names[at : at + size] for at in range(0, len(names), size))


def _between(members: Hosts) -> Iterator[Problem]:
    """Yield what is wrong between the members of one endpoint."""
    first, (name, endpoint) = members[0], _group_endpoint(members[0])
    if len(members) < endpoint.size:
        verb = "is" if len(members) == 1 else "are"
        text = f"{endpoint.size} hosts serve one endpoint together, and {_names(members)} {verb} left over"
        text += f"; next: {endpoint.size - len(members)} more beside it in the inventory, or `hosts: 1`"
        if not isinstance(endpoint.hosts, int):
            others = ", ".join(one for one in endpoint.hosts if one not in [host.name for host in members])
            text = (
                f"{', '.join(endpoint.hosts)} serve {name} together, and {others} has no such list: "
                "write it for all of them"
            )
        yield _problem(first, "hosts", text)
        return
    for other in members[1:]:
        yield from _unlike(first, other)
    yield from _lost(members)


def _unlike(first: InventoryHost, other: InventoryHost) -> Iterator[Problem]:
    """Yield what must be the same on all of them, and is not: one release serves them all."""
    name, endpoint = _group_endpoint(first)
    theirs = _group_endpoint(other)[1]
    for key in (key for key in EndpointSettings.model_fields if getattr(endpoint, key) != getattr(theirs, key)):
        text = f"{first.name} and {other.name} serve one endpoint together, and {key} of {name} differs between them"
        yield _problem(other, key, text)
    ours, its = (one.settings.hardware.model_copy(update={"rack": None}) for one in (first, other))
    for key in (key for key in type(ours).model_fields if getattr(ours, key) != getattr(its, key)):
        text = f"{first.name} and {other.name} serve one endpoint together, and hardware.{key} differs between them"
        yield Problem(origin_of(other.origins, ("hardware", key)), ("hardware", key), text, other.name, code=MISFIT)


def _lost(members: Hosts) -> Iterator[Problem]:
    first_with: dict[str, str] = {}
    for host in members:
        address = address_of(host)
        if not address:
            text = f"{host.name} resolves to no IPv4 address here, so the others of its endpoint cannot find it: set it"
            yield Problem(None, ("fabric_address",), text, host.name, code=LOST)
        elif address in first_with:
            both = f"{host.name} and {first_with[address]} both have {address}"
            text = f"{both}, so the other hosts of its endpoint cannot find it"
            yield Problem(None, ("fabric_address",), text, host.name, code=LOST)
        first_with.setdefault(address, host.name)


def address_of(host: InventoryHost) -> str:
    """Return the address by which other members reach a host: the setting, or what SSH goes to; empty when unknown."""
    return host.settings.fabric_address or resolved_address(place_of(host.name, host.data).address)


@cache
def resolved_address(name: str) -> str:
    """Return a name's first IPv4 address that is not this machine's own; empty when it has no such address."""
    try:
        found = [str(entry[4][0]) for entry in socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)]
    except OSError:
        return ""
    return next((address for address in found if not is_loopback(address)), "")


def _placed(members: Hosts) -> Iterator[InventoryHost]:
    name, endpoint = _group_endpoint(members[0])
    places = tuple(GroupMember(host.name, address_of(host)) for host in members)
    for rank, host in enumerate(members):
        yield replace(host, settings=host.settings.in_group(Group(name, places, rank, launch_ports(endpoint))))


def kept_in_group(host: InventoryHost, settings: HostSettings, next_command: str) -> HostSettings:
    """Return a host's settings with arguments of its deploy file in them, in the group that the inventory gave it.

    Raises InvalidSettingsError when these arguments themselves ask for other hosts: they say so of one host alone.
    """
    group = host.settings.group
    sizes = {name: endpoint.size for name, endpoint in settings.all_endpoints.items() if endpoint.size > 1}
    if sizes != ({group.endpoint: len(group.members)} if group else {}):
        text = "says which hosts serve together, and a deploy file says it of one: write it into group_vars"
        raise InvalidSettingsError([Problem(None, ("hosts",), text, host.name, code=MISFIT)], next_command)
    return settings.in_group(group)


def _names(hosts: Iterable[InventoryHost]) -> str:
    return ", ".join(host.name for host in hosts)


def mates_of(hosts: Iterable[InventoryHost]) -> dict[str, tuple[str, ...]]:
    """By host, all that serve its endpoint together, for those that do not serve alone."""
    return {host.name: host.settings.group.hosts for host in hosts if host.settings.group}


def left_out(hosts: Hosts, chosen: Iterable[str]) -> Mapping[Group, tuple[str, ...]]:
    """Return the groups of which some members are chosen and others are not, with those that are missing."""
    named = set(chosen)
    groups = {host.settings.group.hosts: host.settings.group for host in hosts if host.settings.group}
    return {
        group: tuple(host for host in group.hosts if host not in named)
        for group in groups.values()
        if named & set(group.hosts) and not named >= set(group.hosts)
    }
