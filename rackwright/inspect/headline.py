"""The first line of a plan: what stops, what starts again, and about how long that takes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil

from rackwright.inspect.host_names import hosts_text
from rackwright.inspect.plan import HostPlan
from rackwright.messages import counted


@dataclass(frozen=True)
class Waves:
    """Waves of a rollout after its canary: hosts of each, and seconds for which one is watched before the next."""

    size: int
    bake: int

    def watched(self, turns: int) -> int:
        """Return the seconds between the waves of so many turns."""
        return self.bake * ceil((turns - 1) / self.size)


NO_WAVES = Waves(1, 0)
"""A plain deploy."""


def headline(
    plans: Sequence[HostPlan], typical: float | None = None, at_once: int = 1, drain: int = 0, waves: Waves = NO_WAVES
) -> str:
    """`restarts 4 endpoints on 4 hosts, about 20 min; stops llm on gpu03`.

    typical: seconds that a host's switch takes here. at_once: hosts that may be down at the same time. drain: seconds
    that each may wait for open requests behind a gateway; 0 without one. waves: those of a rollout.
    """
    pending = [plan for plan in plans if plan.state == "pending"]
    restarting = {(one, plan.together or (plan.host,)) for plan in pending for one in _restarted(plan)}
    stopping = {plan.host: texts for plan in pending if (texts := _stopped(plan))}
    parts = [_restarts([hosts for _, hosts in restarting], typical, at_once, drain, waves)] if restarting else []
    parts += [f"{' and '.join(endpoints)} on {hosts_text(hosts)}" for endpoints, hosts in _alike(stopping)]
    return "; ".join(parts) or "stops nothing that serves"


def with_restart_notes(plans: Sequence[HostPlan]) -> list[HostPlan]:
    """Return the same plans; a host whose endpoint restarts with the others that serve it gets that sentence."""
    because = {plan.host: plan for plan in plans if plan.state == "pending" and _restarted(plan)}
    return [_with_note(plan, [because[name] for name in plan.together if name in because]) for plan in plans]


def _with_note(plan: HostPlan, others: Sequence[HostPlan]) -> HostPlan:
    if not others or plan.host in [one.host for one in others]:
        return plan
    names = _names(_restarted(one) for one in others)
    with_them = f"with {', '.join(one.host for one in others)}, where something is changed"
    note = f"endpoint {', '.join(names)} restarts here too, together {with_them}"
    return replace(plan, notes=(*plan.notes, note))


def _restarted(plan: HostPlan) -> list[str]:
    return _names(change.down for change in plan.changes)


def _stopped(plan: HostPlan) -> list[str]:
    """Return what becomes of the endpoints that a host no longer has: replaced by another one, or stopped."""
    swapped = [change for change in plan.changes if change.stops and change.comes]
    gone = _names(change.stops for change in plan.changes if not change.comes)
    texts = [f"replaces {', '.join(change.stops)} by {', '.join(change.comes)}" for change in swapped]
    return [*texts, *([f"stops {', '.join(gone)}"] if gone else [])]


def _names(several: Iterable[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(name for names in several for name in names))


def _restarts(endpoints: Sequence[Sequence[str]], typical: float | None, at_once: int, drain: int, waves: Waves) -> str:
    """endpoints: the hosts of each; those that serve one together switch as one."""
    hosts, turns = {name for members in endpoints for name in members}, {members[0] for members in endpoints}
    one_by_one = ceil(len(turns) / at_once)
    watched = waves.watched(len(turns))
    switches = one_by_one * typical if typical else 0
    time = f", about {_duration(switches + watched)}" if typical else ""
    if watched:
        time += f": {_duration(switches)} of switches and" if typical else ","
        time += f" {_duration(watched)} between waves (rollout.bake)"
    # A typical switch has waited for its clients, too: this is what it may come to, at worst.
    waits = f", and up to {_duration(one_by_one * drain)} until no request is open (drain_timeout)" if drain else ""
    return f"restarts {counted(len(endpoints), 'endpoint')} on {counted(len(hosts), 'host')}{time}{waits}"


def _duration(seconds: float) -> str:
    return f"{round(seconds)} s" if seconds < 90 else f"{round(seconds / 60)} min"


def _alike(stopping: dict[str, list[str]]) -> list[tuple[list[str], list[str]]]:
    found: dict[tuple[str, ...], list[str]] = {}
    for host, names in stopping.items():
        found.setdefault(tuple(names), []).append(host)
    return [(list(names), hosts) for names, hosts in found.items()]
