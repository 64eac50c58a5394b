"""Reads machines over SSH for `rackwright init`: as the login user, without sudo, and nothing is changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rackwright.adapter.run.poll import Reply, poll
from rackwright.hostside import host_script
from rackwright.init.host_keys import Ask, changed_key, why_untrusted
from rackwright.init.machine import Machine, machine_of
from rackwright.init.typed_host import TypedHost
from rackwright.loading.host import InventoryHost
from rackwright.messages import printable
from rackwright.settings.connection import defaults
from rackwright.settings.host_settings import SITE, HostSettings

KEY_ERROR = "host key error"
"""Words of pyinfra's for a key that has changed."""


def read_machines(hosts: Sequence[TypedHost], ask: Ask | None) -> dict[TypedHost, Machine]:
    """Return each host's machine; one that cannot be reached has its trouble. ask: as for `why_untrusted`."""
    found = {host: Machine(trouble=why) for host in hosts if (why := why_untrusted(host, ask))}
    entries = {host: _entry(host) for host in hosts if host not in found}
    replies = poll(list(entries.values()), lambda _: host_script("machine_read"))
    return {host: found.get(host) or _machine(host, replies[entries[host].name]) for host in hosts}


def _entry(host: TypedHost) -> InventoryHost:
    data = {**host.data, **defaults(host.name, host.data), "_sudo": False}
    settings = HostSettings.model_validate({}, context={SITE: Path.cwd()})
    return InventoryHost(host.name, (), data, settings, {})


def _machine(host: TypedHost, reply: Reply) -> Machine:
    if not reply.trouble:
        return machine_of(reply.lines)
    return Machine(trouble=changed_key(host) if KEY_ERROR in reply.trouble else printable(reply.trouble))
