"""The way of each model and image in a plan: who asks hub or registry, who takes it from whom. Hosts are only read."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rackwright.adapter.run.session import loaded_for
from rackwright.concerns.endpoint.concern import ENDPOINT
from rackwright.concerns.handed_images import image_sharers, images_asked_for, is_image, label_of
from rackwright.concerns.image import IMAGE
from rackwright.concerns.models import MODELS, sharers
from rackwright.concerns.models.fleet import Fleet, asked_for, chains_of, nearest, without_source
from rackwright.concerns.models.neighbours import RUN_TOKEN
from rackwright.inspect.read_hosts import Surveyed
from rackwright.loading.files import site_root
from rackwright.messages import SettingsError
from rackwright.plan.hand_on import ChainPart, HandsOn, Sharer
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.secret import Secret
from rackwright.sources.lockfile import Locks

AT_MOST = 4
"""Hosts outside a plan that are looked at for it: a deploy asks more, until it has found some."""
SHOWN = 8
"""Hosts of a way that its text lists."""


@dataclass(frozen=True)
class HandedWay:
    """The way of one model or image."""

    name: str
    """Its name among hosts."""
    having: tuple[str, ...]
    """Hosts that have it already and hand it on."""
    order: tuple[str, ...]
    """Hosts that lack it, each after the one that it takes from first."""

    @property
    def text(self) -> str:
        """The way as a line for people."""
        begin = " or ".join(self.having) if self.having else f"the {self._origin}"
        few = [*self.order[: SHOWN - 1], "...", self.order[-1]] if len(self.order) > SHOWN else self.order
        return f"handed on: {label_of(self.name)}: {' > '.join([begin, *few])}"

    @property
    def values(self) -> dict[str, Any]:
        """The same for `--json`."""
        kind = "image" if is_image(self.name) else "model"
        return {kind: label_of(self.name), "from": list(self.having) or [self._origin], "hosts": list(self.order)}

    @property
    def _origin(self) -> str:
        return "registry" if is_image(self.name) else "hub"


ReadHosts = Callable[[Sequence[str]], Sequence[Surveyed]]
"""Reads hosts, by their names."""


def settings_of_fleet(inventory: str, limit: Sequence[str], only: Sequence[str]) -> dict[str, HostSettings]:
    """Return the settings of all hosts of an inventory, with its lock file; those that are not valid are missing."""
    everybody, _ = loaded_for(inventory, limit, only)
    locks, found = Locks(site_root(Path(inventory).expanduser())), dict[str, HostSettings]()
    for entry in everybody:
        with suppress(SettingsError):
            found[entry.name] = locks.pin(entry.settings)
    return found


def with_ways(
    hosts: Sequence[Surveyed], fleet: Mapping[str, HostSettings], read: ReadHosts
) -> tuple[list[Surveyed], list[HandedWay]]:
    """Return the hosts of a plan with their parts, and the way of each model and image that one of them lacks.

    fleet: the settings of all hosts of the inventory, in its order. read: reads those that the plan is not for.
    """
    of_plan = {one.name: _sharers(one) for one in hosts}
    others = {one.name: _having(one) for one in read(_candidates(of_plan, fleet))}
    merged: Fleet = {name: {**of_plan.get(name, {}), **others.get(name, {})} for name in fleet}
    parts = chains_of(merged, lambda name: _seed(fleet[name]))
    return [_with_parts(one, parts.get(one.name, {})) for one in hosts], _ways(parts)


def _sharers(one: Surveyed) -> dict[str, Sharer]:
    if one.reading is None:
        return {}
    serves = any(endpoint.serving for endpoint in one.reading[ENDPOINT].endpoints.values())
    kinds = {IMAGE.name: image_sharers, MODELS.name: sharers}
    declared = [of for concern, of in kinds.items() if concern in one.declared]
    return {name: part for of in declared for name, part in of(one.name, one.settings, one.reading, serves).items()}


def _having(one: Surveyed) -> dict[str, Sharer]:
    return {name: replace(sharer, outside=True) for name, sharer in _sharers(one).items() if sharer.has}


def _candidates(of_plan: Fleet, fleet: Mapping[str, HostSettings]) -> list[str]:
    """Return hosts outside the plan that may have what none of it has, the nearest first."""
    found = without_source(of_plan)
    lacking = {name: first for name, first in found.items() if name in _asked_for(fleet[first])}
    if not lacking:
        return []
    near = nearest(list(fleet), next(iter(lacking.values())))
    return [name for name in near if name not in of_plan and _asked_for(fleet[name]) & lacking.keys()][:AT_MOST]


def _asked_for(settings: HostSettings) -> frozenset[str]:
    return asked_for(settings) | images_asked_for(settings)


def _seed(settings: HostSettings) -> str | None:
    return settings.downloads.hand_on.seed if settings.downloads.hand_on else None


def _with_parts(one: Surveyed, parts: Mapping[str, ChainPart]) -> Surveyed:
    """Return a host with its parts; one that has the model stays without changes."""
    taking = {name: part for name, part in parts.items() if not part.keeps}
    if one.reading is None or not taking:
        return one
    token = {RUN_TOKEN: Secret(secrets.token_hex(32))}  # a plan starts nothing: no other host ever gets it
    return replace(one, reading=replace(one.reading, hands_on=HandsOn(taking, token)))


def _ways(parts: Mapping[str, Mapping[str, ChainPart]]) -> list[HandedWay]:
    names = dict.fromkeys(name for those in parts.values() for name in those)
    return [_way(name, {host: those[name] for host, those in parts.items() if name in those}) for name in names]


def _way(name: str, parts: Mapping[str, ChainPart]) -> HandedWay:
    having = tuple(host for host, part in parts.items() if part.keeps)
    taking = {host: part for host, part in parts.items() if not part.keeps}
    return HandedWay(name, having, _in_order(taking))


def _in_order(taking: Mapping[str, ChainPart]) -> tuple[str, ...]:
    """Return hosts in the order of their chain: each one's first source stands before it."""
    before = {name: part.sources[0].host if part.sources else "" for name, part in taking.items()}
    after = {source: name for name, source in before.items()}
    first = next(name for name, source in before.items() if source not in before)
    order = [first]
    while order[-1] in after:
        order.append(after[order[-1]])
    return tuple(order)
