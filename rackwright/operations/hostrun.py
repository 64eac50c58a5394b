"""One host in a run under pyinfra: its reading, and how a change is carried out and shown.

Rules it carries (facts tried on real hosts): the reading is kept by host *name* and by stage, a host that cannot
be read fails alone, failures are yielded and never raised, and every sentence is printed before the first
command, because change detection stops there.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from rackwright.adapter.host import Host, State, acting_on, real_host, say
from rackwright.adapter.operation import FunctionCommand, PyinfraCommand
from rackwright.adapter.run.declaring import steps_known
from rackwright.adapter.run.inventories import settings_of
from rackwright.adapter.run_context import part_of
from rackwright.adapter.ssh.passwords import refuse_passwords
from rackwright.adapter.ssh.way_back import NoWayBackError
from rackwright.bundle.running import lead_to_bundle
from rackwright.concerns.apply import Batch, perform, perform_all
from rackwright.concerns.lease import LEASED
from rackwright.concerns.lease.own_leases import was_leased
from rackwright.concerns.lease.take_lease import take
from rackwright.concerns.read_host import read_host
from rackwright.messages import RackwrightError, coded, waiting
from rackwright.plan.change import Change, Job, Refuse
from rackwright.plan.concern import Concern, HostReading
from rackwright.plan.ownership import RECORD, OwnershipRecord
from rackwright.remote import downloads
from rackwright.remote.commands import complain
from rackwright.remote.errors import StepFailedError
from rackwright.remote.transfers import Transfers
from rackwright.settings.secret import without_secrets
from rackwright.sources.names import Names

Commands = Generator[PyinfraCommand, None, None]
refuse_passwords()


@dataclass
class HostState:
    """A run's state of one host. `stage` is True while pyinfra executes, False while it only looks for changes.

    stale: the reading must no longer be decided by. behind: the host is not whole as it was read.
    """

    stage: bool
    reading: HostReading | None
    stale: bool = False
    behind: bool = False
    changed: bool = False
    record: OwnershipRecord = field(default_factory=lambda: OwnershipRecord(frozenset()))


@dataclass(frozen=True)
class RunHosts:
    """A run's state of its hosts, by name, and the digests and commits of tags and revisions."""

    by_name: dict[str, HostState] = field(default_factory=dict)
    names: Names = field(default_factory=Names)


def reading_of(host: Host, whole: bool = False) -> HostReading | None:
    """Return the host's reading for this stage; taken again when something was changed since that others decide by.

    whole: taken again when anything was changed since. Returns None when the host cannot be read.
    """
    hosts = part_of(host.state, RunHosts).by_name
    cached = hosts.get(host.name)
    if (
        cached is not None
        and cached.stage == host.state.is_executing
        and not (cached.stale or (whole and cached.behind))
    ):
        return _among(host, cached.reading)
    reading = _read(host)
    fresh = HostState(host.state.is_executing, reading, changed=cached.changed if cached else False)
    if reading is not None:
        fresh.record = OwnershipRecord(reading[RECORD])
    hosts[host.name] = fresh
    return _among(host, reading)


def _among(host: Host, reading: HostReading | None) -> HostReading | None:
    """Return the reading, with those that this run has by now of the hosts that serve the same endpoint."""
    group = settings_of(host).group
    if reading is None or group is None:
        return reading
    states = part_of(host.state, RunHosts).by_name
    others = {name: states[name].reading for name in group.hosts if name != host.name and name in states}
    return replace(reading, others={name: one for name, one in others.items() if one is not None})


def state_of(host: Host) -> HostState:
    """Return what this run knows of a host that was looked at, as of its newest reading."""
    return part_of(host.state, RunHosts).by_name[host.name]


def was_changed(host: Host) -> bool:
    """Return whether this run has changed the host."""
    state = part_of(host.state, RunHosts).by_name.get(host.name)
    return state is not None and state.changed


def _read(host: Host) -> HostReading | None:
    real = real_host(host)
    reading: HostReading | None = None
    # The watcher of a wave looks at other hosts than its own, and each is read by its own settings.
    with acting_on(real):
        try:
            no_way = _lead_to_bundle(real)
            with waiting(lambda: f"{real.name} to be read"):
                found, _ = read_host(real, settings_of(real), steps=steps_known(real))
            if no_way is not None and (found[LEASED].live is None or was_leased(real)):
                raise no_way
            reading = found
        except RackwrightError as error:
            complain(real, str(error))
    if reading is None and not host.state.is_executing:
        complain(real, coded("RW1316", "could not be read, so nothing is known of its changes"))
        host.state.failed_hosts.add(real)
        host.state.active_hosts.discard(real)
    return part_of(host.state, RunHosts).names.complete(settings_of(real), reading) if reading is not None else None


def _lead_to_bundle(host: Host) -> NoWayBackError | None:
    """Let a host reach its bundle; returns why it cannot: a run that has its lease has its port, too."""
    try:
        lead_to_bundle(host, settings_of(host))
    except NoWayBackError as error:
        return error
    return None


def fail(text: str) -> FunctionCommand:
    """Return a command that fails its host, and no other one, with a text."""

    def not_done(state: State, host: Host) -> bool:  # noqa: ARG001 - pyinfra passes both by name
        return _failed(host, text)

    return FunctionCommand(not_done, (), {})


def _failed(host: Host, text: str) -> bool:
    """Say why a host is out of the run, whose others need not wait for it. Return False, as pyinfra wants it."""
    complain(host, text)
    part_of(host.state, Transfers).failed.add(real_host(host).name)
    return False


def unreadable(host: Host) -> Commands:
    """Fail a host that could not be read, when something would be done to it."""
    if host.state.is_executing:
        yield fail(coded("RW1316", "could not be read, so nothing was done; see the line above"))


def announce_changes(host: Host, changes: Sequence[Change]) -> None:
    """Print each change as a sentence, with its diff when asked for by --diff."""
    for change in changes:
        say(host, without_secrets(("" if host.state.is_executing else "would ") + change.sentence), "yellow")
        if change.diff and host.state.config.DIFF:
            for row in change.diff.splitlines():
                say(host, f"  {without_secrets(row)}")


def leased_changes(
    host: Host, decide: Callable[[HostReading], Sequence[Change]]
) -> Generator[PyinfraCommand, None, list[Change] | None]:
    """Decide what is to be changed on a host; the lease is taken first. None when that failed, and was reported.

    When another process has written to the host since it was read, it is read and decided again.
    """
    try:
        reading = reading_of(host)
        changes = list(decide(reading)) if reading is not None else []
        if reading is not None and _lease_due(host, changes):
            reading = _take_lease(host, reading)
            changes = list(decide(reading)) if reading is not None else []
    except StepFailedError as error:
        yield fail(str(error))
        return None
    if reading is None:
        yield from unreadable(host)
        return None
    return changes


def lease_for_others(host: Host) -> HostReading | None:
    """Take the lease of a host that takes part for other hosts' sake; None where this run has it already.

    Returns the reading that counts now. Raises StepFailedError.
    """
    if was_leased(host):
        return None
    reading = reading_of(host)
    reading = _take_lease(host, reading) if reading is not None else None
    if reading is None:
        raise StepFailedError("could not be read, so nothing was done; see the line above", code="RW1316")
    return reading


def _take_lease(host: Host, reading: HostReading) -> HostReading | None:
    """Take a host's lease; return the reading that counts now: a new one when another process has written since."""
    state_of(host).stale = not take(real_host(host), reading[LEASED]).fresh
    if no_way := _lead_to_bundle(real_host(host)):
        raise StepFailedError(no_way.text, code=no_way.code)
    return reading_of(host)


def _lease_due(host: Host, changes: Sequence[Change]) -> bool:
    return any(map(_writes, changes)) and host.state.is_executing and not was_leased(host)


def _writes(change: Change) -> bool:
    """Return whether it writes to the host: by a step, or to the ownership record alone."""
    if not change.steps:
        return bool(change.owns or change.disowns)
    return any(not isinstance(step, Refuse) for step in change.steps)


def mark_changed(host: Host, alone: bool = False) -> None:
    """Note that a host is being changed: its reading is stale from now on, unless no other concern decides by it."""
    state = state_of(host)
    state.changed = state.behind = host.state.is_executing
    state.stale = host.state.is_executing and (state.stale or not alone)


def commands(change: Change) -> Commands:
    """Return a change as one command of pyinfra's."""
    yield FunctionCommand(_perform, (Quiet(change),), {})


def decide_and_carry_out(host: Host, decide: Callable[[HostReading], Sequence[Change]]) -> Commands:
    """Say and make what is to be changed on a host, under its lease."""
    changes = yield from leased_changes(host, decide)
    announce_changes(host, changes or ())
    for change in changes or ():
        mark_changed(host)
        yield from commands(change)


def begun(concern: Concern[Any, Any], change: Change) -> Commands:
    """Do the same for a change whose jobs are only begun: `collected` tells how they ended."""
    yield FunctionCommand(_begin, (Quiet(concern), Quiet(change)), {})


def _begin(state: State, host: Host, concern: Quiet, change: Quiet) -> bool:  # noqa: ARG001 - pyinfra passes both by name
    def do(batch: Batch) -> None:
        if isinstance(batch[0], Job):
            downloads.begin(real_host(host), batch[0], concern.value.alone)
        else:
            perform(host, batch)

    return _succeeds(host, lambda: perform_all(change.value, state_of(host).record, do))


def mark_begun(host: Host) -> None:
    """Note that a host is being changed by downloads: nothing decides by them before they are collected."""
    state = state_of(host)
    state.changed = state.behind = state.changed or host.state.is_executing


def collected(host: Host) -> Commands:
    """Wait for what was begun on a host. Waiting changes nothing, so it is not a command; a failure is."""
    failures: list[str] = []
    for download in downloads.collect(real_host(host)):
        mark_changed(host, download.alone)
        if download.failure is not None:
            failures.append(str(download.failure))
    if failures:
        yield fail("\n".join(failures))


def carry_out(host: Host, change: Change) -> None:
    """Carry out a change on a host that was looked at. Raises StepFailedError."""
    perform_all(change, state_of(host).record, partial(perform, host))


def carry_out_all(host: Host, changes: Sequence[Change]) -> None:
    """Carry out changes after which the host must be read again before anything is decided. Raises StepFailedError."""
    for change in changes:
        mark_changed(host)
        perform_all(change, state_of(host).record, partial(perform, host))


@dataclass(frozen=True)
class Quiet:
    """Carries a value through pyinfra without being printed at --debug."""

    value: Any

    def __repr__(self) -> str:
        return type(self.value).__name__


def _perform(state: State, host: Host, change: Quiet) -> bool:  # noqa: ARG001 - pyinfra passes both by name
    return _succeeds(host, lambda: carry_out(host, change.value))


def _succeeds(host: Host, work: Callable[[], None]) -> bool:
    """Return whether a piece of work was done; if not, why is said."""
    try:
        work()
    except StepFailedError as error:
        return _failed(host, str(error))
    return True
