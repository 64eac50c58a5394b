"""The first line of a plan: what stops, what starts again, and about how long that takes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil

from rackwright.fleet.inspect.host_names import hosts_text
from rackwright.fleet.inspect.plan import HostPlan
from rackwright.printable import counted


def headline(plans: Sequence[HostPlan], typical: float | None = None, at_once: int = 1) -> str:
    """`restarts 4 endpoints on 4 hosts, about 20 min; stops llm on gpu03`.

    typical: seconds that a host's switch takes here. at_once: hosts that may be down at the same time.
    """
    pending = [plan for plan in plans if plan.state == "pending"]
    restarting = {plan.host: names for plan in pending if (names := _names(change.down for change in plan.changes))}
    stopping = {plan.host: names for plan in pending if (names := _names(change.stops for change in plan.changes))}
    parts = [_restarts(restarting, typical, at_once)] if restarting else []
    parts += [f"stops {', '.join(own)} on {hosts_text(hosts)}" for own, hosts in _alike(stopping)]
    return "; ".join(parts) or "stops nothing that serves"


def _names(several: Iterable[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(name for names in several for name in names))


def _restarts(hosts: dict[str, list[str]], typical: float | None, at_once: int) -> str:
    number = sum(map(len, hosts.values()))
    time = f", about {_duration(ceil(len(hosts) / at_once) * typical)}" if typical else ""
    return f"restarts {counted(number, 'endpoint')} on {counted(len(hosts), 'host')}{time}"


def _duration(seconds: float) -> str:
    return f"{round(seconds)} s" if seconds < 90 else f"{round(seconds / 60)} min"


def _alike(stopping: dict[str, list[str]]) -> list[tuple[list[str], list[str]]]:
    found: dict[tuple[str, ...], list[str]] = {}
    for host, names in stopping.items():
        found.setdefault(tuple(names), []).append(host)
    return [(list(names), hosts) for names, hosts in found.items()]
