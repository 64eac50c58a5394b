"""Hosts with the same changes, shown once; sums over a plan. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rackwright.exit_codes import ExitCode
from rackwright.inspect.plan import HostPlan, PlannedChange


@dataclass(frozen=True)
class AlikeHosts:
    """Hosts, in inventory order, whose plans read the same."""

    hosts: tuple[str, ...]
    plan: HostPlan
    """Their common plan; where hosts have values of their own (the name of a release), these are left open."""


def group(plans: Iterable[HostPlan]) -> list[AlikeHosts]:
    """Return groups in the order of their first hosts; every host is in exactly one."""
    found: dict[object, list[HostPlan]] = {}
    for plan in plans:
        found.setdefault(_likeness(plan), []).append(plan)
    return [AlikeHosts(tuple(plan.host for plan in alike), _common(alike)) for alike in found.values()]


def _likeness(plan: HostPlan) -> object:
    changes = tuple((c.concern, c.alike, c.restarts, c.download, c.estimated) for c in plan.changes)
    return plan.state, changes, plan.refusals, plan.error, plan.notes, plan.others


def _common(plans: Sequence[HostPlan]) -> HostPlan:
    first = plans[0]
    if all(plan.changes == first.changes for plan in plans):
        return first
    return replace(first, changes=tuple(_open(change) for change in first.changes))


def _open(change: PlannedChange) -> PlannedChange:
    what, why, diff = change.alike
    return replace(change, what=what, why=why, diff=diff)


def download(changes: Iterable[PlannedChange]) -> tuple[int, bool, bool]:
    """Bytes to fetch, whether some of them are an estimate, and whether something of unknown size comes on top."""
    all_of = list(changes)
    total = sum(change.download or 0 for change in all_of)
    return total, any(c.estimated and c.download for c in all_of), any(c.download is None for c in all_of)


def exit_code(plans: Iterable[HostPlan]) -> int:
    """0 nothing pending, 2 changes pending, 1 when a host is refused or nothing is known of it."""
    states = {plan.state for plan in plans}
    if states & {"refused", "unreadable", "unreachable"}:
        return ExitCode.ERROR
    return ExitCode.PENDING if "pending" in states else ExitCode.DONE
