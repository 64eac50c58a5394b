"""The time that the rest of a rollout takes, from the durations of its finished switches. Pure."""

from __future__ import annotations

from math import ceil
from statistics import median

from rackwright.record.states import RunState
from rackwright.record.view.timeline import HostTimeline, Timeline


def remaining(timeline: Timeline, now: float) -> float | None:
    """Return seconds until the last wave is done; None before any switch was measured, in this run or an earlier one.

    now: seconds since 1970.
    """
    measured = [host.took for host in timeline.hosts.values() if host.took is not None]
    typical = median(measured) if measured else timeline.typical
    if typical is None or not timeline.waves:
        return None
    open_hosts = [[timeline.hosts[name] for name in wave if timeline.hosts[name].is_open] for wave in timeline.waves]
    waves = [hosts for hosts in open_hosts if hosts]
    bake = timeline.bakes[-1].seconds if timeline.bakes else timeline.bake
    switching = sum(_wave(timeline, hosts, typical, now) for hosts in waves)
    return switching + bake * max(0, len(waves) - 1) + _of_this_bake(timeline, now)


def _wave(timeline: Timeline, hosts: list[HostTimeline], typical: float, now: float) -> float:
    """Return rounds of as many hosts as may be down, less what those under way have done already."""
    begun = [host.began for host in hosts if host.state == RunState.SWITCHING and host.began is not None]
    done = min(typical, max(0.0, now - max(begun))) if begun else 0.0
    return ceil(len(hosts) / _at_once(timeline, hosts)) * typical - done


def _at_once(timeline: Timeline, hosts: list[HostTimeline]) -> int:
    names = {host.name for host in hosts}
    held = [limit.most for limit in timeline.limits.values() if limit.hosts & names]
    return max(1, min([len(hosts), *held]))


def _of_this_bake(timeline: Timeline, now: float) -> float:
    last = timeline.bakes[-1] if timeline.bakes else None
    if last is None or any(host.state == RunState.SWITCHING for host in timeline.hosts.values()):
        return 0.0
    return max(0.0, last.start + last.seconds - now)
