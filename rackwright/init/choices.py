"""Parts of a fresh site: its groups, each with a profile and hosts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rackwright.init.machine import Machine, nearest_fit
from rackwright.init.typed_host import TypedHost
from rackwright.profiles import catalog
from rackwright.profiles.catalog import Profile


@dataclass(frozen=True)
class SiteHost:
    """A host of a fresh site, and what was read of it; None: nothing was asked."""

    host: TypedHost
    machine: Machine | None = None


@dataclass(frozen=True)
class SiteGroup:
    """A group of a fresh site: hosts that serve one profile."""

    name: str
    profile: Profile
    hosts: tuple[SiteHost, ...] = ()

    @property
    def inventory(self) -> str:
        """Stem of its inventory: its machine's."""
        return self.profile.inventory


@dataclass(frozen=True)
class Choices:
    """A fresh site: its groups, and hosts that fit none of their profiles."""

    groups: tuple[SiteGroup, ...]
    left_out: tuple[SiteHost, ...] = ()

    @property
    def inventories(self) -> dict[str, list[SiteGroup]]:
        """Return the groups of each inventory."""
        found: dict[str, list[SiteGroup]] = {}
        for group in self.groups:
            found.setdefault(group.inventory, []).append(group)
        return found


def choices(profiles: Sequence[str], machines: Mapping[TypedHost, Machine]) -> Choices:
    """Return a site of these profiles: each host is in the group of the first one that fits it.

    A host that could not be read is in the first group.
    """
    by_profile: dict[str, list[SiteHost]] = {name: [] for name in dict.fromkeys(profiles)}
    left_out: list[SiteHost] = []
    for host, machine in machines.items():
        name = nearest_fit(machine, [*by_profile])
        (by_profile[name] if name else left_out).append(SiteHost(host, machine))
    alone = _alone(by_profile)
    groups = [
        SiteGroup(_group_name(name, alone), catalog.profile(name), tuple(hosts)) for name, hosts in by_profile.items()
    ]
    return Choices(tuple(groups), tuple(left_out))


def _alone(profiles: Iterable[str]) -> set[str]:
    """Return the profiles that are the only one for their machine."""
    stems = [catalog.profile(name).inventory for name in profiles]
    return {name for name, stem in zip(profiles, stems, strict=True) if stems.count(stem) == 1}


def _group_name(profile: str, alone: set[str]) -> str:
    """Return the machine's name where there is one profile for it: another profile is then one line."""
    return catalog.profile(profile).inventory if profile in alone else profile


def best(machines: Iterable[Machine]) -> tuple[str, ...]:
    """Return the best profile for each kind of machine."""
    return tuple(dict.fromkeys(machine.fitting[0] for machine in machines if machine.fitting))
