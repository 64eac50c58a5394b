"""The pyinfra operations that settle one concern or look at the whole: settle, converged, hash, try, tear down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyinfra.api import operation
from pyinfra.api.host import Host

from rackwright.catalog import ALL, by_name
from rackwright.change import Change, Refuse
from rackwright.concern import Concern
from rackwright.concerns.models import MODELS, hash_changes
from rackwright.concerns.registry import try_key
from rackwright.effects import complain, say
from rackwright.fleet.journal import note
from rackwright.fleet.masking import told
from rackwright.hostrun import (
    Commands,
    announce_changes,
    commands,
    fail,
    look,
    this_host,
    touch,
    unreadable,
    was_changed,
)
from rackwright.inventory import settings_of
from rackwright.teardown import plan_teardown


@operation()
def settle(concern: str) -> Commands:
    """Make a host match its settings in one concern; yields nothing when it does.

    + concern: name of the concern, for example `docker`
    """
    yield from _settle(this_host(), by_name(concern))


def _settle(host: Host, concern: Concern[Any, Any]) -> Commands:
    seen = look(host)
    if seen is None:
        yield from unreadable(host)
        return
    settings = settings_of(host)
    wanted = concern.wanted(settings, seen)
    changes = list(concern.changes(wanted, seen[concern]))
    if concern.report and (text := concern.report(wanted, seen[concern])):
        for line in text.splitlines():
            say(host, line)
    announce_changes(host, changes)
    if changes and host.state.is_executing:
        note("stage", host=host.name, concern=concern.name, **told(changes, settings))
    _give_up_early(host, changes)
    for change in changes:
        touch(host)
        yield from commands(host, change)


def _give_up_early(host: Host, changes: Sequence[Change]) -> None:
    """While looking ahead, a refusal takes the host out of the run, so that nothing is written to it later."""
    refusals = [step for change in changes for step in change.steps if isinstance(step, Refuse) and step.final]
    if refusals and not host.state.is_executing:
        for refusal in refusals:
            complain(host, refusal.text)
        host.state.failed_hosts.add(host)
        host.state.active_hosts.discard(host)


@operation()
def converged() -> Commands:
    """Read a changed host once more: whatever is still pending did not converge, and is an error."""
    host = this_host()
    if not host.state.is_executing or not was_changed(host):
        return
    seen = look(host)
    if seen is None:
        yield from unreadable(host)
        return
    for concern in ALL:
        for change in concern.pending(settings_of(host), seen):
            yield fail(f"did not converge: still pending in {concern.name}: {change.sentence}")


@operation()
def hash_models() -> Commands:
    """Hash every model file again when `verify_deep` is set; yields nothing otherwise."""
    host = this_host()
    seen = look(host)
    if seen is not None and settings_of(host).verify_deep:
        yield from _carry_out(host, hash_changes(seen[MODELS]))


@operation()
def try_keys() -> Commands:
    """Try the registry's key when `check_keys` is set; yields nothing otherwise."""
    host = this_host()
    settings = settings_of(host)
    change = try_key(settings.registry) if settings.check_keys and look(host) is not None else None
    yield from _carry_out(host, [change] if change else [])


def _carry_out(host: Host, changes: Sequence[Change]) -> Commands:
    announce_changes(host, changes)
    for change in changes:
        touch(host)
        yield from commands(host, change)


@operation()
def tear_down(purge: bool = False) -> Commands:
    """Undo the host's ownership record.

    + purge: models and images too
    """
    host = this_host()
    seen = look(host)
    if seen is None:
        yield from unreadable(host)
        return
    plan = plan_teardown(seen, purge)
    announce_changes(host, plan.changes)
    for change in plan.changes:
        yield from commands(host, change, record_last=True)
    for text in plan.left if host.state.is_executing else ():
        say(host, f"left on the host: {text}")
