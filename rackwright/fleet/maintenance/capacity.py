"""Whether hosts can be taken out of service by hand: alone, and within what `rollout.max_unavailable` leaves. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from rackwright.errors import RackwrightError
from rackwright.fleet.inspect.host_names import hosts_text
from rackwright.fleet.rollout.waves import amount
from rackwright.loading.host import InventoryHost
from rackwright.printable import counted


@dataclass(frozen=True)
class Place:
    """One host of the inventory: where it counts, and whether it serves now."""

    domains: tuple[str, ...]
    serves: bool
    max_unavailable: str


def refuse_groups(leaving: Sequence[InventoryHost]) -> None:
    """Raises RackwrightError when one of the hosts serves an endpoint together with others."""
    together = [host for host in leaving if any(own.size > 1 for own in host.settings.all_endpoints.values())]
    if together:
        raise RackwrightError(
            f"{hosts_text([host.name for host in together])}: an endpoint of several hosts starts and stops as one, "
            "and drain and reboot do not know that yet; nothing was done; next, on its first host, which stops all: "
            "systemctl stop rackwright-NAME",
            code="RW0842",
        )


def too_many_down(places: Mapping[str, Place], leaving: Collection[str]) -> list[str]:
    """A sentence for each group or rack that would have more hosts down than its limit.

    Hosts that do not serve now are down already; to take one of them out takes nothing away.
    """
    going = [name for name in leaving if places[name].serves]
    domains = dict.fromkeys(domain for name in going for domain in places[name].domains)
    return [text for domain in domains if (text := _told(domain, places, going))]


def _told(domain: str, places: Mapping[str, Place], going: Sequence[str]) -> str:
    inside = [name for name, place in places.items() if domain in place.domains]
    most = min(amount(places[name].max_unavailable, len(inside)) for name in inside)
    leaving = [name for name in inside if name in going]
    down = [name for name in inside if not places[name].serves]
    if len(down) + len(leaving) <= most:
        return ""
    already = f" beside {hosts_text(down)}, which {'does' if len(down) == 1 else 'do'} not serve now" if down else ""
    return f"{domain}: {counted(len(leaving), 'host')} more would be down{already}; rollout.max_unavailable is {most}"
