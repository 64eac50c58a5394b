"""The pyinfra operations that settle one concern or look at the whole: settle, converged, hash, try, tear down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyinfra.api import operation
from pyinfra.api.host import Host

from rackwright.catalog import ALL, by_name
from rackwright.change import Change, Refuse
from rackwright.concern import Concern, HostReading
from rackwright.concerns.models import MODELS, hash_changes
from rackwright.concerns.registry import try_key
from rackwright.effects import complain, say
from rackwright.fence import forget, hold_of
from rackwright.fleet.journal import note
from rackwright.fleet.masking import told
from rackwright.hostrun import (
    Commands,
    announce_changes,
    commands,
    decided,
    fail,
    look,
    this_host,
    touch,
    unreadable,
    was_changed,
)
from rackwright.inventory import settings_of
from rackwright.lease import LEASED
from rackwright.leasing import clear_dead
from rackwright.teardown import plan_teardown


@operation()
def settle(concern: str) -> Commands:
    """Make a host match its settings in one concern; yields nothing when it does.

    + concern: name of the concern, for example `docker`
    """
    yield from _settle(this_host(), by_name(concern))


def _settle(host: Host, concern: Concern[Any, Any]) -> Commands:
    settings = settings_of(host)
    changes = yield from decided(host, lambda seen: concern.pending(settings, seen))
    if changes is None:
        return
    _report(host, concern)
    announce_changes(host, changes)
    if changes and host.state.is_executing:
        note("stage", host=host.name, concern=concern.name, **told(changes, settings))
    _give_up_early(host, changes)
    for change in changes:
        touch(host, concern.alone)
        yield from commands(change)


def _report(host: Host, concern: Concern[Any, Any]) -> None:
    seen = look(host)
    if seen is not None and concern.report is not None:
        text = concern.report(concern.wanted(settings_of(host), seen), seen[concern])
        for line in text.splitlines():
            say(host, line)


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
    if not host.state.is_executing:
        return
    if not was_changed(host):
        if (read := look(host)) is not None and hold_of(host.name) is None:
            clear_dead(host.state, host, read[LEASED])
        return
    seen = look(host, whole=True)
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
    if settings_of(host).verify_deep:
        yield from _carry_out(host, lambda seen: hash_changes(seen[MODELS]))


@operation()
def try_keys() -> Commands:
    """Try the registry's key when `check_keys` is set; yields nothing otherwise."""
    host = this_host()
    settings = settings_of(host)
    if settings.check_keys and (change := try_key(settings.registry)):
        yield from _carry_out(host, lambda _: [change])


def _carry_out(host: Host, decide: Callable[[HostReading], Sequence[Change]]) -> Commands:
    changes = yield from decided(host, decide)
    announce_changes(host, changes or ())
    for change in changes or ():
        touch(host)
        yield from commands(change)


@operation()
def tear_down(purge: bool = False) -> Commands:
    """Undo the host's ownership record.

    + purge: models and images too
    """
    host = this_host()
    changes = yield from decided(host, lambda seen: plan_teardown(seen, purge).changes)
    seen = look(host)
    if changes is None or seen is None:
        return
    announce_changes(host, changes)
    for change in changes:
        yield from commands(change)
    if host.state.is_executing:
        forget(host.name)
        for text in plan_teardown(seen, purge).left:
            say(host, f"left on the host: {text}")
