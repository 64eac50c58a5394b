"""All chosen hosts of an inventory, read side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from rackwright.adapter.run.declaring import declared_by, overlay_all
from rackwright.adapter.run.session import Connected, chosen_hosts, connected
from rackwright.bundle.running import lead_to_bundle
from rackwright.concerns.deploy_steps import Declared
from rackwright.concerns.read_host import read_host
from rackwright.loading.files import site_root
from rackwright.messages import RackwrightError, listed, waiting
from rackwright.plan.concern import HostReading
from rackwright.plan.reading import Section
from rackwright.settings.host_settings import HostSettings
from rackwright.sources.lockfile import Locks
from rackwright.sources.names import Names

T = TypeVar("T")
More = Callable[[HostSettings], Mapping[str, str]]
"""Further sections to read on a host, by name."""


@dataclass(frozen=True)
class Surveyed:
    """One host with its settings, the lock file's included, what deploy.py calls for it, and what was read of it."""

    name: str
    settings: HostSettings
    declared: Declared
    reading: HostReading | None
    sections: Mapping[str, Section] = field(default_factory=dict)
    trouble: str = ""
    """The reason for the missing reading."""
    reached: bool = True
    address: str = ""
    """Its SSH address."""


def survey(
    inventory: str, limit: Sequence[str], more: More | None = None, only: Sequence[str] = (), whole: bool = False
) -> list[Surveyed]:
    """Read every chosen host with one command each, in inventory order; hosts are only looked at.

    whole: all concerns are read, also those that deploy.py does not call.
    Raises RackwrightError for a wrong inventory, and when no host can be reached.
    """
    entries = chosen_hosts(inventory, limit, only, arguments=False)
    root = site_root(Path(inventory).expanduser())
    declared = declared_by(root, entries)
    locks = Locks(root)
    deploy = root / "deploy.py"
    wanted = {entry.name: locks.pin(entry.settings) for entry in overlay_all(entries, declared, deploy)}
    with connected(entries) as hosts:
        # Its lock must be gevent's: a real one, made before `connected` patches, stops the only thread for ever.
        names = Names()

        def read(one: Connected) -> Surveyed:
            return _read(one, wanted[one.host.name], declared[one.host.name], more, names, whole)

        found = in_parallel(hosts, read)
    away = "no connection; next: ssh to it by hand, or leave it out by --limit"
    unseen = {
        entry.name: Surveyed(entry.name, wanted[entry.name], declared[entry.name], None, trouble=away, reached=False)
        for entry in entries
    }
    return [replace(found.get(entry.name, unseen[entry.name]), address=entry.address) for entry in entries]


def _read(
    one: Connected, settings: HostSettings, declared: Declared, more: More | None, names: Names, whole: bool
) -> Surveyed:
    steps = () if whole else declared.steps
    try:
        lead_to_bundle(one.host, settings, fetches=False)
        reading, sections = read_host(one.host, settings, more(settings) if more else None, steps)
    except RackwrightError as error:
        return Surveyed(one.host.name, settings, declared, None, trouble=str(error))
    return Surveyed(one.host.name, settings, declared, names.complete(settings, reading), sections)


def in_parallel(hosts: Sequence[Connected], work: Callable[[Connected], T]) -> dict[str, T]:
    """Return the results of `work`, by host name; as many hosts at once as pyinfra works on."""
    if not hosts:
        return {}
    pending = [one.host.name for one in hosts]

    def carry_out(one: Connected) -> T:
        try:
            return work(one)
        finally:
            pending.remove(one.host.name)

    names = list(pending)
    with waiting(lambda: listed(pending, len(names))):
        return dict(zip(names, hosts[0].host.state.pool.map(carry_out, hosts), strict=True))
