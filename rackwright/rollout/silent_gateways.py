"""Gateways that no longer ask a host that serves for its word: they would not hear that it is drained. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError
from rackwright.rollout.maintenance.host_marks import HostMarks

GONE = 6
"""Seconds without a question, three of its intervals, after which a gateway is gone (hostside/askers.sh)."""


def silent_gateways(entries: Iterable[InventoryHost], marks: Mapping[str, HostMarks]) -> dict[str, dict[str, int]]:
    """Return, by gateway, the hosts that serve and that it no longer asks, with the seconds since it last did.

    One that has never asked since a host's boot sends it nothing: it takes a host in by its word alone. Gateways that
    the inventory no longer has do not count.
    """
    found: dict[str, dict[str, int]] = {}
    for entry in entries:
        names = {gateway.host for gateway in entry.settings.gateways}
        for question in marks.get(entry.name, HostMarks()).questions:
            if question.gateway in names and question.ago > GONE:
                found.setdefault(question.gateway, {})[entry.name] = question.ago
    return found


def refuse_silent_gateways(
    inventory: str, entries: Sequence[InventoryHost], marks: Mapping[str, HostMarks], hosts: Collection[str]
) -> None:
    """Raise RackwrightError when a gateway no longer asks one of these hosts."""
    silent = silent_gateways([entry for entry in entries if entry.name in hosts], marks)
    if not silent:
        return
    limit = "".join(f" --limit {gateway}" for gateway in silent)
    rows = [f"gateway {gateway} no longer asks {_hosts(ages)}" for gateway, ages in silent.items()]
    raise RackwrightError(
        "a gateway would not hear that a host is drained, and its clients' requests would fail; nothing was done\n"
        + "\n".join(rows)
        + f"\nnext: pyinfra {inventory} deploy.py{limit}; or take it out of the inventory's group gateway",
        code="RW0827",
    )


def _hosts(ages: Mapping[str, int]) -> str:
    return ", ".join(f"{host} (since {seconds} s)" for host, seconds in ages.items())
