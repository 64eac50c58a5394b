"""The operating systems of hosts, asked over SSH; nothing is changed there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rackwright.adapter.run.poll import Reply, poll
from rackwright.bundle.apt_root import system_of
from rackwright.hostside import host_script
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError, few, printable

PREFIX = "system "


def systems_asked(entries: Sequence[InventoryHost]) -> dict[str, str]:
    """Return hosts' systems by name, as `debian-12-amd64`. Raises RackwrightError unless all of them say one."""
    script = host_script("system_read")
    return systems_in(poll(entries, lambda _: script))


def systems_in(replies: Mapping[str, Reply]) -> dict[str, str]:
    """Return the systems in hosts' replies. Raises RackwrightError for those that name none that can be bundled."""
    found, lacking = dict[str, str](), list[str]()
    for host, reply in replies.items():
        words = [row.removeprefix(PREFIX) for row in reply.lines if row.startswith(PREFIX)]
        try:
            system_of(words[0])
            found[host] = words[0]
        except IndexError:
            lacking.append(f"{host}: {reply.trouble or 'it said nothing'}")
        except RackwrightError:
            lacking.append(f"{host}: no packages can be bundled for {printable(words[0], longest=60)}")
    if lacking:
        text = (
            f"the system of {len(lacking)} of {len(replies)} hosts is not known, so nothing was written: {few(lacking)}"
        )
        raise RackwrightError(f"{text}; next: hardware.system in their group_vars, or --system", code="RW3902")
    return found
