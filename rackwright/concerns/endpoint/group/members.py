"""Changes of a member that is not the head: join the group, and follow its head. Pure."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from rackwright.concerns.endpoint.binding import Binding
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
from rackwright.settings.host_settings import EndpointSettings

FOLLOWING = 120
"""Seconds in which a member must run what its head has just proven: it is in line with it all the time."""


def place_in_words(group: Group) -> str:
    """Return a host's rank, for people."""
    return f"rank {group.rank} of {len(group.members)}, head {group.head.host}"


def member_changes(endpoint: WantedEndpoint, release: Release, reading: SeenEndpoint, group: Group) -> list[Change]:
    """Return the changes of a member that is not the head; nothing when it serves what is wanted with the others."""
    joins = _why_join(endpoint, reading)
    follows = _why_follow(endpoint, release, reading)
    found = [_join(endpoint, release, group, joins)] if joins else _put_in_place(endpoint, release.spec.name, reading)
    if not follows and not joins:
        return found
    return [
        *found,
        replace(follow_change(endpoint.settings, release.spec.name, release.hash, group), why=follows or joins),
    ]


def is_elsewhere(wanted: Binding, reading: SeenEndpoint | None) -> bool:
    """Return True if the proven release is served by other hosts than those that are wanted, or at other ranks."""
    if reading is None or reading.proven_binding is None or not reading.proven_spec:
        return False
    proven = (reading.proven_binding.rank, reading.proven_binding.addresses)
    return proven != (wanted.rank, wanted.addresses)


class Stage(Enum):
    """The moment of a member's change, in the turn of its head."""

    BEFORE = "before the head's own changes, begun on all members"
    BACK = "before the head's own changes, when all members have begun theirs"
    AFTER = "after the head's own changes"


def stage_of(change: Change) -> Stage:
    """Return the stage of a member's change."""
    if any(isinstance(step, Job) and step.waits for step in change.steps):
        return Stage.AFTER
    return Stage.BACK if any(isinstance(step, HostReturn) for step in change.steps) else Stage.BEFORE


def _why_join(endpoint: WantedEndpoint, reading: SeenEndpoint) -> str:
    """Return why it does not wait on its lifeline as it should."""
    if reading.current is None or reading.unit is None:
        return "it has never run here"
    rows = {
        "its place, its GPUs, or the other hosts' addresses changed": reading.binding != endpoint.binding,
        f"its unit is {reading.active}": reading.active not in ("active", "activating"),
    }
    return next((text for text, differs in rows.items() if differs), "")


def _put_in_place(endpoint: WantedEndpoint, name: str, reading: SeenEndpoint) -> list[Change]:
    """Return the repair of a member that matches its head, without a restart: that would restart all of them."""
    rows = {"its unit differs": not reading.unit_same, "it is not enabled at boot": not reading.enabled}
    why = ", ".join(text for text, differs in rows.items() if differs)
    if not why or reading.current is None:
        return []
    script = point_script(name, reading.current, endpoint.binding) + gpus_kept_script()
    return [
        Change(f"put the unit {unit_name(name)} back in place without a restart", why, (Shell(script),), endpoint=name)
    ]


def is_join(change: Change) -> bool:
    """Return True if a member's change makes it rejoin its head, so that all of them restart."""
    return Owned("unit", unit_name(change.endpoint)) in change.owns if change.endpoint else False


def _why_follow(endpoint: WantedEndpoint, release: Release, reading: SeenEndpoint) -> str:
    """Return why it does not serve what is wanted; the head adopts a release that differs in scripts alone."""
    served = reading.proven_spec.get("serving")
    if served == release.spec.serving_hash and reading.has_proven(reading.current or "", endpoint.binding):
        return "" if reading.serving or reading.loading else "it does not serve"
    return f"it serves release {reading.proven}" if reading.proven else "it has never served here"


def _join(endpoint: WantedEndpoint, release: Release, group: Group, why: str) -> Change:
    name = release.spec.name
    script = tidy_script(name) + join_group_script(name, release.hash, endpoint.binding, endpoint.keep_releases)
    return Change(
        f"let endpoint {name} wait for its head here ({place_in_words(group)})",
        why,
        (Shell(script),),
        owns=(Owned("unit", unit_name(name)),),
        endpoint=name,
    )


def follow_change(settings: EndpointSettings, name: str, release: str, group: Group) -> Change:
    """Wait until a member serves a release that its head has proven; settings: the endpoint's."""
    script = wait_followed_script(name, release, FOLLOWING)
    what = f"follow {group.head.host} to release {release} of endpoint {name}"
    seconds = FOLLOWING + start_time(settings)
    job = Job(endpoint_job("wait", name), what, script, seconds, waits=True, code="RW2420")
    return Change(what, "it serves with its head", (job,), endpoint=name)
