"""The pyinfra operations of `rackwright cache`: hash files again, fetch broken ones, remove what nothing needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rackwright.adapter.host import Host, this_host
from rackwright.adapter.operation import operation
from rackwright.adapter.run.inventories import count_as_deployed
from rackwright.concerns.caches.damage import repair_changes, verify_changes
from rackwright.concerns.caches.spare import PARTIAL, agreed_changes, spare_of
from rackwright.concerns.models import MODELS
from rackwright.loading.files import site_root
from rackwright.operations.hand_on import among_others
from rackwright.operations.hostrun import (
    Commands,
    announce_changes,
    begun,
    collected,
    decide_and_carry_out,
    leased_changes,
    mark_begun,
    reading_of,
    unreadable,
)
from rackwright.plan.change import Change
from rackwright.plan.concern import HostReading
from rackwright.record.handover import received
from rackwright.settings.host_settings import HostSettings


@operation()
def verify_caches() -> Commands:
    """Hash every file of a host's models and encodings again."""
    host = this_host()
    settings = _settings(host)
    yield from decide_and_carry_out(host, lambda reading: verify_changes(settings, reading))


@operation()
def read_caches() -> Commands:
    """Read each host before any decides what it takes from others; changes nothing."""
    host = this_host()
    _settings(host)
    if host.state.is_executing and reading_of(host) is None:
        yield from unreadable(host)


@operation()
def repair_caches() -> Commands:
    """Fetch exactly those files again that are not as verified: from other hosts of the run where hosts hand on."""
    host = this_host()
    settings = _settings(host)

    def decide(reading: HostReading) -> Sequence[Change]:
        return repair_changes(settings, among_others(host, reading, repairs=True))

    changes = yield from leased_changes(host, decide)
    announce_changes(host, changes or ())
    for change in changes or ():
        mark_begun(host)
        yield from begun(MODELS, change)
    if host.state.is_executing:
        yield from collected(host)


@operation()
def prune_caches() -> Commands:
    """Remove what no endpoint and no kept release needs, of what an operator has agreed to."""
    host, agreed = this_host(), received().agreed
    settings = _settings(host)

    def decide(reading: HostReading) -> Sequence[Change]:
        names = [name.removeprefix(f"{host.name}:") for name in agreed]
        unfinished = dict.fromkeys(name for name in names if name.endswith(PARTIAL))
        return agreed_changes(spare_of(settings, reading, unfinished, {}), frozenset(names))

    yield from decide_and_carry_out(host, decide)


def _settings(host: Host) -> HostSettings:
    return count_as_deployed(host, site_root(Path(received().inventory)))
