"""Systems whose packages a bundle has: those of the settings, those that hosts have said, those of --system. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rackwright.settings.host_settings import HostSettings
from rackwright.settings.image_file import MACHINES


@dataclass(frozen=True)
class BundledSystems:
    """Settings of the hosts that may have each system, and the hosts whose system is not known."""

    hosts: Mapping[str, Sequence[HostSettings]]
    """By system, as `debian-12-amd64`."""
    unknown: Sequence[str] = ()


def systems_of(
    hosts: Mapping[str, HostSettings], named: Sequence[str], machines: Sequence[str], answers: Mapping[str, str]
) -> BundledSystems:
    """Return the systems of hosts. named: by --system. machines: processors of hosts whose settings name none.

    answers: of hosts that were asked, by name.
    """
    by_host = {
        name: [answers[name]] if name in answers else [*_of(settings, machines)] for name, settings in hosts.items()
    }
    systems = dict.fromkeys([*named, *(one for some in by_host.values() for one in some)])
    found = {system: _possible(system, hosts, by_host) for system in systems}
    return BundledSystems(found, [name for name, some in by_host.items() if not some and not named])


def _of(settings: HostSettings, machines: Sequence[str]) -> Iterator[str]:
    """Yield a host's systems by its settings, one for each processor that it may have."""
    hardware = settings.hardware
    if hardware.system:
        machines = [MACHINES[hardware.architecture]] if hardware.architecture else machines
        yield from (f"{hardware.system}-{machine}" for machine in machines)


def _possible(
    system: str, hosts: Mapping[str, HostSettings], by_host: Mapping[str, Sequence[str]]
) -> Sequence[HostSettings]:
    """Return the hosts that have a system, and those that may; all of them where none does."""
    found = [settings for name, settings in hosts.items() if not by_host[name] or system in by_host[name]]
    return found or [*hosts.values()]
