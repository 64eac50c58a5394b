"""Check that hosts can be taken out of service by hand: alone, and within `rollout.max_unavailable`. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rackwright.inspect.host_names import hosts_text
from rackwright.loading.group import left_out
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError, counted
from rackwright.rollout.waves import amount


@dataclass(frozen=True)
class HostCapacity:
    """One host of the inventory: where it counts, and whether it serves now."""

    domains: tuple[str, ...]
    serves: bool
    max_unavailable: str


def refuse_halves(leaving: Sequence[InventoryHost], verb: str) -> None:
    """Raise RackwrightError when only some of the hosts that serve an endpoint together are listed.

    verb: what they are listed for, as `drain`.
    """
    named = [host.name for host in leaving]
    for group in left_out(leaving, named):
        whole = dict.fromkeys([*group.hosts, *named])
        raise RackwrightError(
            f"{', '.join(group.hosts)} serve endpoint {group.endpoint} together, so that they start and stop as one; "
            f"nothing was done; next, the same command with all of them: rackwright {verb} {' '.join(whole)}",
            code="RW0842",
        )


def heads(everybody: Iterable[InventoryHost]) -> dict[str, str]:
    """By host, the one that it counts as: the head of those that serve with it, or itself."""
    return {host.name: host.settings.group.head.host if host.settings.group else host.name for host in everybody}


def as_ones(places: Mapping[str, HostCapacity], heads: Mapping[str, str]) -> dict[str, HostCapacity]:
    """Hosts that serve together count as one place: their head's, wherever any of them stands.

    heads: by host, the one that it counts as.
    """
    by_head = {head: [places[name] for name, other in heads.items() if other == head] for head in heads.values()}
    return {
        head: replace(places[head], domains=tuple(dict.fromkeys(one for member in among for one in member.domains)))
        for head, among in by_head.items()
    }


def too_many_down(places: Mapping[str, HostCapacity], leaving: Collection[str]) -> list[str]:
    """Return a sentence for each group or rack that would have more hosts down than its limit.

    Hosts that do not serve now are down already; to take one of them out takes nothing away.
    """
    going = [name for name in leaving if places[name].serves]
    domains = dict.fromkeys(domain for name in going for domain in places[name].domains)
    return [text for domain in domains if (text := _sentence(domain, places, going))]


def _sentence(domain: str, places: Mapping[str, HostCapacity], going: Sequence[str]) -> str:
    inside = [name for name, capacity in places.items() if domain in capacity.domains]
    most = min(amount(places[name].max_unavailable, len(inside)) for name in inside)
    leaving = [name for name in inside if name in going]
    down = [name for name in inside if not places[name].serves]
    if len(down) + len(leaving) <= most:
        return ""
    already = f" beside {hosts_text(down)}, which {'does' if len(down) == 1 else 'do'} not serve now" if down else ""
    return f"{domain}: {counted(len(leaving), 'host')} more would be down{already}; rollout.max_unavailable is {most}"
