"""What must happen on a member that is not the head: take its place, and follow. Pure."""

from __future__ import annotations

from rackwright.concerns.endpoint.group.scripts import join_group_script, wait_followed_script
from rackwright.concerns.endpoint.seen import SeenEndpoint
from rackwright.concerns.endpoint.switch.transaction import start_time
from rackwright.concerns.endpoint.wanted import WantedEndpoint
from rackwright.paths import endpoint_job, unit_name
from rackwright.plan.change import Change, Job, Owned, Shell
from rackwright.plan.release import Release
from rackwright.settings.group import Group

FOLLOWING = 120
"""Seconds in which a member must run what its head has just proven: it is in line with it all the time."""


def place_in_words(group: Group) -> str:
    """A host's place, for people."""
    return f"rank {group.rank} of {len(group.members)}, head {group.head.host}"


def member_changes(own: WantedEndpoint, release: Release, seen: SeenEndpoint, group: Group) -> list[Change]:
    """The changes of a member that is not the head; nothing when it serves what is wanted with the others."""
    joins = _why_join(own, seen)
    follows = _why_follow(own, release, seen)
    found = [_join(own, release, group, joins)] if joins else []
    return [*found, _follow(own, release, group, follows or joins)] if follows or joins else found


def is_elsewhere(own: WantedEndpoint, seen: SeenEndpoint | None) -> bool:
    """Whether what was proven here is served by other hosts than those that are wanted, or in other places."""
    if seen is None or seen.proven_binding is None or not seen.proven_spec:
        return False
    there = (seen.proven_binding.rank, seen.proven_binding.addresses)
    return there != (own.binding.rank, own.binding.addresses)


def is_afterwards(change: Change) -> bool:
    """Whether a member's change comes after the head's own ones."""
    return any(isinstance(step, Job) and step.waits for step in change.steps)


def _why_join(own: WantedEndpoint, seen: SeenEndpoint) -> str:
    """Why it is not waiting at its line as it should."""
    if seen.current is None or seen.unit is None:
        return "it has never run here"
    rows = {
        "its unit differs": not seen.unit_same,
        "it is not enabled at boot": not seen.enabled,
        "its place, its GPUs, or the other hosts' addresses changed": seen.binding != own.binding,
        f"its unit is {seen.active}": seen.active not in ("active", "activating"),
    }
    return next((text for text, differs in rows.items() if differs), "")


def _why_follow(own: WantedEndpoint, release: Release, seen: SeenEndpoint) -> str:
    """Why it does not serve what is wanted; a release that differs in scripts alone is the head's to adopt."""
    served = seen.proven_spec.get("serving")
    if served == release.spec.serving_hash and seen.has_proven(seen.current or "", own.binding):
        return "" if seen.serving or seen.loading else "it does not serve"
    return f"it serves release {seen.proven}" if seen.proven else "it has never served here"


def _join(own: WantedEndpoint, release: Release, group: Group, why: str) -> Change:
    name = release.spec.name
    script = join_group_script(name, release.hash, own.binding, own.keep_releases)
    return Change(
        f"let endpoint {name} wait for its head here ({place_in_words(group)})",
        why,
        (Shell(script),),
        owns=(Owned("unit", unit_name(name)),),
        endpoint=name,
    )


def _follow(own: WantedEndpoint, release: Release, group: Group, why: str) -> Change:
    name = release.spec.name
    script = wait_followed_script(name, release.hash, FOLLOWING)
    what = f"follow {group.head.host} to release {release.hash} of endpoint {name}"
    seconds = FOLLOWING + start_time(own.settings)
    job = Job(endpoint_job("wait", name), what, script, seconds, waits=True, code="RW2420")
    return Change(what, why, (job,), endpoint=name)
