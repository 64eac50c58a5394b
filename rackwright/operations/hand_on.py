"""Hosts of a run that take models and images from each other: each chain, planned once, and the run's secrets."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rackwright.adapter.concurrency import new_lock
from rackwright.adapter.host import Host
from rackwright.adapter.run.declaring import declared_of
from rackwright.adapter.run.inventories import settings_of
from rackwright.adapter.run_context import part_of
from rackwright.concerns.handed_images import image_sharers
from rackwright.concerns.image import IMAGE
from rackwright.concerns.models import MODELS, sharers
from rackwright.concerns.models.fleet import Fleet, chains_of
from rackwright.concerns.models.repair import broken_models
from rackwright.operations import outside_hosts
from rackwright.operations.handed_kinds import HANDED_IMAGES, HANDED_MODELS, HandedKind
from rackwright.operations.hostrun import RunHosts
from rackwright.operations.run_certificate import run_certificate
from rackwright.plan.concern import HostReading
from rackwright.plan.hand_on import ChainPart, HandsOn, Sharer
from rackwright.rollout.run_hosts import serves
from rackwright.settings.secret import Secret
from rackwright.settings.sections import HandOn


@dataclass
class Chains:
    """The chains of a run by host and model, once they are planned, and the secrets of its hosts."""

    parts: Mapping[str, Mapping[str, ChainPart]] | None = None
    images: Mapping[str, Mapping[str, ChainPart]] | None = None
    """Those of images."""
    token: Secret = field(default_factory=lambda: Secret(secrets.token_hex(32)))
    certificate: Secret | None = None
    lock: Any = field(default_factory=new_lock)
    """Held while they are planned, for which other hosts may be asked."""


def among_others(host: Host, reading: HostReading, repairs: bool = False) -> HostReading:
    """Return the reading of a host with its part in what hosts hand on, once this run has read all its hosts.

    repairs: a run that only puts right what is broken, on all hosts that have it.
    """
    hand_on = settings_of(host).downloads.hand_on
    if hand_on is None or not host.state.is_executing:
        return reading
    chains = part_of(host.state, Chains)
    with chains.lock:
        if chains.parts is None:
            chains.parts = _planned(host, chains, HANDED_MODELS, dict(_sharers(host, repairs)))
    return replace(reading, hands_on=HandsOn(chains.parts.get(host.name, {}), _secrets(chains, hand_on.tls)))


def images_among_others(host: Host, hand_on: HandOn | None, reading: HostReading) -> HostReading:
    """Return the reading of a host with its part in the images that hosts hand on, as `among_others` does for models.

    They are planned on their own: an image comes first, and Docker itself may have come only in this run.
    hand_on: the host's settings.
    """
    if hand_on is None or not hand_on.images or not host.state.is_executing:
        return reading
    chains = part_of(host.state, Chains)
    with chains.lock:
        if chains.images is None:
            chains.images = _planned(host, chains, HANDED_IMAGES, _image_fleet(host))
    return replace(reading, hands_on=HandsOn(chains.images.get(host.name, {}), _secrets(chains, hand_on.tls)))


def _secrets(chains: Chains, encrypts: bool) -> dict[str, Secret]:
    if not encrypts:
        return {"run_token": chains.token}
    chains.certificate = chains.certificate or run_certificate()
    return {"run_token": chains.token, "tls.pem": chains.certificate}


def _planned(host: Host, chains: Chains, kind: HandedKind, of_run: Fleet) -> dict[str, dict[str, ChainPart]]:
    """Plan the chains of a kind, and have those hosts outside the run begin that have what its own lack."""
    others = outside_hosts.found_outside(host, of_run, kind)
    has = {one.host.name: one.has for one in others}
    fleet: Fleet = {name: {**of_run.get(name, {}), **has.get(name, {})} for name in _names(host)}
    parts = chains_of(fleet, lambda name: _seed(host, name))
    for one in others:
        if parts[one.host.name] and one.settings.downloads.hand_on:
            secrets_of = _secrets(chains, one.settings.downloads.hand_on.tls)
            outside_hosts.hand_on(one, HandsOn(parts[one.host.name], secrets_of))
        else:
            outside_hosts.leave(one)
    return parts


def _names(host: Host) -> list[str]:
    return [one.name for one in host.state.inventory]


def _sharers(host: Host, repairs: bool) -> Iterator[tuple[str, dict[str, Sharer]]]:
    """Yield what each host of the run that was read hands on or takes, by its name, in the inventory's order."""
    for other, reading in _read_hosts(host):
        found = sharers(other.name, settings_of(other), reading, serves(reading))
        if repairs:
            broken = broken_models(settings_of(other), reading)
            yield other.name, {model: one for model, one in found.items() if one.has or model in broken}
        elif MODELS.name in declared_of(other):
            yield other.name, found


def _image_fleet(host: Host) -> Fleet:
    """Return how each host of the run that was read takes part in its images."""
    return {
        other.name: image_sharers(other.name, settings_of(other), reading, serves(reading))
        for other, reading in _read_hosts(host)
        if IMAGE.name in declared_of(other)
    }


def _read_hosts(host: Host) -> Iterator[tuple[Host, HostReading]]:
    """Yield the hosts of the run that were read, in the inventory's order."""
    states = part_of(host.state, RunHosts).by_name
    for other in host.state.inventory:
        reading = states[other.name].reading if other.name in states else None
        if reading is not None and other in host.state.active_hosts:
            yield other, reading


def _seed(host: Host, name: str) -> str | None:
    """Return the seed that a host's settings name."""
    hand_on = settings_of(host.state.inventory.get_host(name)).downloads.hand_on
    return hand_on.seed if hand_on else None
