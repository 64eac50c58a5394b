"""Releases of a group's other hosts, and what makes a host that comes back serve the same. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rackwright.concerns.endpoint.container_diff import reasons
from rackwright.concerns.endpoint.seen import SeenEndpoint
from rackwright.concerns.models import name_of
from rackwright.inspect.status.reading import Asked, HostStatus
from rackwright.settings.host_settings import EndpointSettings
from rackwright.sources.lockfile import Lock, LockedModel


@dataclass(frozen=True)
class Served:
    """The serving part of a group's hosts: equal but for units and helper scripts, which may be adopted later."""

    spec: Mapping[str, Any]
    hosts: tuple[str, ...]
    releases: tuple[str, ...]
    """Each once."""


@dataclass(frozen=True)
class EndpointOfPeers:
    """The state of an endpoint's group, as a host finds it that comes back."""

    served: tuple[Served, ...] = ()
    pins: Mapping[str, str] = field(default_factory=dict)
    """Digest by image reference, as the hosts of the group have recorded it."""


def place_of(endpoint: str, peers: Mapping[str, HostStatus], together: Collection[str] = ()) -> EndpointOfPeers:
    """Return the releases that the peers, by name, have proven and serve under an endpoint's name.

    together: peers that serve it together with the host that comes back, so that they wait until it is there.
    """
    found: dict[str, Served] = {}
    pins: dict[str, str] = {}
    for host, glance in peers.items():
        status = glance.endpoints.get(endpoint)
        if (
            status is None
            or not status.observed.spec
            or not (_serves(status.observed) or (host in together and _waits(status.observed)))
        ):
            continue
        pins = {**glance.pins, **pins}
        serving = status.observed.spec["serving"]
        found[serving] = _with(
            found.get(serving, Served(status.observed.spec, (), ())), host, str(status.observed.proven)
        )
    return EndpointOfPeers(tuple(found.values()), pins)


def _serves(endpoint: SeenEndpoint) -> bool:
    return endpoint.serving and endpoint.running_hash == endpoint.proven


def _waits(endpoint: SeenEndpoint) -> bool:
    return endpoint.proven is not None and endpoint.current == endpoint.proven


def _with(same: Served, host: str, release: str) -> Served:
    return replace(same, hosts=(*same.hosts, host), releases=tuple(dict.fromkeys((*same.releases, release))))


def lock_of(endpoints: Mapping[str, EndpointSettings], places: Mapping[str, EndpointOfPeers]) -> Lock:
    """Return the bytes that the group serves, for names in the settings without a digest or commit of their own."""
    images: dict[str, str] = {}
    models: dict[str, LockedModel] = {}
    for name, endpoint in endpoints.items():
        shared = places[name]
        if endpoint.image_digest is None and endpoint.image in shared.pins:
            images[endpoint.image] = shared.pins[endpoint.image]
        serving: Mapping[str, str] = shared.served[0].spec.get("models", {}) if shared.served else {}
        for source in (endpoint.model, endpoint.draft):
            if source and not source.commit and serving.get(source.repository):
                models[name_of(source)] = LockedModel(commit=serving[source.repository])
    return Lock(images, models)


def differences(wanted: Asked, places: Mapping[str, EndpointOfPeers]) -> list[str]:
    """Return why the host would not get what its group serves, a sentence an endpoint; empty when it would."""
    return [text for name in wanted.endpoints for text in _difference(name, wanted, places[name])]


def _difference(name: str, settings: Asked, shared: EndpointOfPeers) -> Iterable[str]:
    if not shared.served:
        return
    if len(shared.served) > 1:
        releases = "; ".join(f"{', '.join(one.hosts)}: {', '.join(one.releases)}" for one in shared.served)
        yield f"endpoint {name}: its group serves {len(shared.served)} different releases ({releases})"
        return
    [group] = shared.served
    wanted = settings.group_release(name)
    if wanted is None:
        yield f"endpoint {name}: {settings.endpoints[name].image} is not the image that its group serves"
    elif wanted.spec.serving_hash != group.spec["serving"]:
        why = reasons(group.spec, wanted.facts) or "another release"
        yield f"endpoint {name}: the settings ask for something else than what its group serves: {why}"
