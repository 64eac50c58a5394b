"""Changes of a member that is not the head: join the group, and follow its head. Pure."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from rackwright.concerns.endpoint.group.scripts import join_group_script, wait_followed_script
from rackwright.concerns.endpoint.release.files import Release
from rackwright.concerns.endpoint.seen import SeenEndpoint
from rackwright.concerns.endpoint.switch.job import gpus_kept_script, point_script, tidy_script
from rackwright.concerns.endpoint.switch.steps import HostReturn
from rackwright.concerns.endpoint.switch.transaction import start_time
from rackwright.concerns.endpoint.wanted import WantedEndpoint
from rackwright.paths import endpoint_job, unit_name
from rackwright.plan.change import Change, Job, Owned, Shell
from rackwright.settings.group import Group
from rackwright.settings.model import EndpointSettings

FOLLOWING = 120
"""Seconds in which a member must run what its head has just proven: it is in line with it all the time."""


def place_in_words(group: Group) -> str:
    """Return a host's rank, for people."""
    return f"rank {group.rank} of {len(group.members)}, head {group.head.host}"


def member_changes(own: WantedEndpoint, release: Release, seen: SeenEndpoint, group: Group) -> list[Change]:
    """Return the changes of a member that is not the head; nothing when it serves what is wanted with the others."""
    joins = _why_join(own, seen)
    follows = _why_follow(own, release, seen)
    found = [_join(own, release, group, joins)] if joins else _put_in_place(own, release.spec.name, seen)
    if not follows and not joins:
        return found
    return [*found, replace(follow_change(own.settings, release.spec.name, release.hash, group), why=follows or joins)]


def is_elsewhere(own: WantedEndpoint, seen: SeenEndpoint | None) -> bool:
    """Return True if the proven release is served by other hosts than those that are wanted, or at other ranks."""
    if seen is None or seen.proven_binding is None or not seen.proven_spec:
        return False
    there = (seen.proven_binding.rank, seen.proven_binding.addresses)
    return there != (own.binding.rank, own.binding.addresses)


class Stage(Enum):
    """When, in the turn of its head, a member's change comes."""

    BEFORE = "before the head's own changes, begun on all members"
    BACK = "before the head's own changes, when all members have begun theirs"
    AFTER = "after the head's own changes"


def stage_of(change: Change) -> Stage:
    """Return the stage of a member's change."""
    if any(isinstance(step, Job) and step.waits for step in change.steps):
        return Stage.AFTER
    return Stage.BACK if any(isinstance(step, HostReturn) for step in change.steps) else Stage.BEFORE


def _why_join(own: WantedEndpoint, seen: SeenEndpoint) -> str:
    """Return why it does not wait on its lifeline as it should."""
    if seen.current is None or seen.unit is None:
        return "it has never run here"
    rows = {
        "its place, its GPUs, or the other hosts' addresses changed": seen.binding != own.binding,
        f"its unit is {seen.active}": seen.active not in ("active", "activating"),
    }
    return next((text for text, differs in rows.items() if differs), "")


def _put_in_place(own: WantedEndpoint, name: str, seen: SeenEndpoint) -> list[Change]:
    """Return the repair of a member that matches its head, without a restart: that would restart all of them."""
    rows = {"its unit differs": not seen.unit_same, "it is not enabled at boot": not seen.enabled}
    why = ", ".join(text for text, differs in rows.items() if differs)
    if not why or seen.current is None:
        return []
    script = point_script(name, seen.current, own.binding) + gpus_kept_script()
    return [
        Change(f"put the unit {unit_name(name)} back in place without a restart", why, (Shell(script),), endpoint=name)
    ]


def is_join(change: Change) -> bool:
    """Return True if a member's change makes it rejoin its head, so that all of them restart."""
    return Owned("unit", unit_name(change.endpoint)) in change.owns if change.endpoint else False


def _why_follow(own: WantedEndpoint, release: Release, seen: SeenEndpoint) -> str:
    """Return why it does not serve what is wanted; the head adopts a release that differs in scripts alone."""
    served = seen.proven_spec.get("serving")
    if served == release.spec.serving_hash and seen.has_proven(seen.current or "", own.binding):
        return "" if seen.serving or seen.loading else "it does not serve"
    return f"it serves release {seen.proven}" if seen.proven else "it has never served here"


def _join(own: WantedEndpoint, release: Release, group: Group, why: str) -> Change:
    name = release.spec.name
    script = tidy_script(name) + join_group_script(name, release.hash, own.binding, own.keep_releases)
    return Change(
        f"let endpoint {name} wait for its head here ({place_in_words(group)})",
        why,
        (Shell(script),),
        owns=(Owned("unit", unit_name(name)),),
        endpoint=name,
    )


def follow_change(own: EndpointSettings, name: str, release: str, group: Group) -> Change:
    """Wait until a member serves a release that its head has proven; own: the endpoint's settings."""
    script = wait_followed_script(name, release, FOLLOWING)
    what = f"follow {group.head.host} to release {release} of endpoint {name}"
    seconds = FOLLOWING + start_time(own)
    job = Job(endpoint_job("wait", name), what, script, seconds, waits=True, code="RW2420")
    return Change(what, "it serves with its head", (job,), endpoint=name)
