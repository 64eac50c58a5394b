"""How long the rest of a rollout takes, from how long its finished switches took. Pure."""

from __future__ import annotations

from math import ceil
from statistics import median

from rackwright.fleet.view.timeline import HostStory, Story
from rackwright.runs.states import RunState


def remaining(story: Story, now: float) -> float | None:
    """Seconds until the last wave is done, or None before any switch has been measured, in this run or an earlier one.

    now: seconds since 1970.
    """
    measured = [host.took for host in story.hosts.values() if host.took is not None]
    typical = median(measured) if measured else story.typical
    if typical is None or not story.waves:
        return None
    left = [[story.hosts[name] for name in wave if story.hosts[name].is_open] for wave in story.waves]
    waves = [hosts for hosts in left if hosts]
    bake = story.bakes[-1].seconds if story.bakes else 0.0
    switching = sum(_wave(story, hosts, typical, now) for hosts in waves)
    return switching + bake * max(0, len(waves) - 1) + _of_this_bake(story, now)


def _wave(story: Story, hosts: list[HostStory], typical: float, now: float) -> float:
    """Rounds of as many hosts as may be down, less what those under way have done already."""
    begun = [host.began for host in hosts if host.state == RunState.SWITCHING and host.began is not None]
    done = min(typical, max(0.0, now - max(begun))) if begun else 0.0
    return ceil(len(hosts) / _at_once(story, hosts)) * typical - done


def _at_once(story: Story, hosts: list[HostStory]) -> int:
    names = {host.name for host in hosts}
    held = [limit.most for limit in story.limits.values() if limit.hosts & names]
    return max(1, min([len(hosts), *held]))


def _of_this_bake(story: Story, now: float) -> float:
    last = story.bakes[-1] if story.bakes else None
    if last is None or any(host.state == RunState.SWITCHING for host in story.hosts.values()):
        return 0.0
    return max(0.0, last.start + last.seconds - now)
