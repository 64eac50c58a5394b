"""The pyinfra operations that switch endpoints, forward and back: hosts line up, and switch in turn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rackwright.adapter.command_output import tail
from rackwright.adapter.host import Host, State, say, shout, this_host
from rackwright.adapter.operation import FunctionCommand, PyinfraCommand, operation
from rackwright.adapter.run.declaring import counts, declared_of, noted
from rackwright.adapter.run.inventories import settings_of
from rackwright.adapter.run_context import part_of
from rackwright.concerns.apply import perform
from rackwright.concerns.docker import DOCKER
from rackwright.concerns.dockerd.concern import DOCKERD
from rackwright.concerns.drained import DRAINED
from rackwright.concerns.endpoint.concern import ENDPOINT, adopted_later, takes_capacity, waits
from rackwright.concerns.endpoint.group.members import Stage, is_join
from rackwright.concerns.endpoint.group.port_isolation import refuse_non_members
from rackwright.concerns.endpoint.peers.beside_peers import PeerFinders
from rackwright.concerns.endpoint.quality.canaries import Canaries
from rackwright.concerns.endpoint.release.concern import RELEASE, binding_of
from rackwright.concerns.endpoint.switch.follow import (
    NothingServesError,
    UnknownEndError,
    ask_all,
    await_earlier,
    with_more,
)
from rackwright.concerns.endpoint.switch.rest_and_return import ask_again
from rackwright.concerns.endpoint.switch.rollback import (
    back_changes,
    parse_kept,
    read_script,
    releases_asked,
    targets_of,
)
from rackwright.concerns.endpoint.switch.steps import DaemonRestart, HostRestart, Proved
from rackwright.concerns.firewall import (
    FIREWALL_AS_SERVED,
    ListenAddress,
    is_ours,
    listens_elsewhere,
    new_addresses,
    opening_changes,
)
from rackwright.concerns.gateway.answer import gateway_answers
from rackwright.concerns.gateway.concern import has_common_address
from rackwright.concerns.lease.run_slice import keep_slice
from rackwright.concerns.marks import QUARANTINE, release_script
from rackwright.inspect.plan import plan_host
from rackwright.messages import coded
from rackwright.operations.group_driver import one_driver
from rackwright.operations.group_turn import (
    MemberTurn,
    begin_others,
    domains_together,
    end_others,
    group_turn_of,
    how_together,
    line_up_head,
    line_up_member,
    note_others,
    perform_others,
    refuse_unable,
    turn_name,
)
from rackwright.operations.hostrun import (
    Commands,
    announce_changes,
    carry_out_all,
    fail,
    lease_for_others,
    leased_changes,
    reading_of,
    state_of,
    unreadable,
)
from rackwright.operations.peers import peers_of
from rackwright.operations.steps import lacks
from rackwright.operations.switch_queue import switch_queue_of
from rackwright.plan.change import Change, Job, Refuse, Shell
from rackwright.plan.concern import Concern, HostReading
from rackwright.record.handover import received
from rackwright.record.journal import note
from rackwright.record.states import RunState
from rackwright.remote.commands import command_of, complain, remote
from rackwright.remote.errors import StepFailedError
from rackwright.remote.jobs import run_job
from rackwright.rollout.run_hosts import (
    RunHost,
    bake_rows,
    domains_of,
    in_rollout,
    may_still_serve,
    node_of,
    outcome_of,
    serves,
    shape_of,
    state_after,
    was_cut,
)
from rackwright.rollout.turn_queue import Outcome
from rackwright.rollout.waves import FIRST, LAST
from rackwright.settings.host_settings import HostSettings

IN_TURN: tuple[Concern[Any, Any], ...] = (DOCKERD, ENDPOINT)
"""Concerns whose changes wait for the host's turn, in this order."""
GATEWAY_BAKE = 10
"""Seconds within which a gateway answers while its wave is watched."""


def switch_endpoints() -> None:
    """Declare the endpoints, and switch them in each host's own turn."""
    if not counts(ENDPOINT.name):
        return
    with noted(ENDPOINT.name):
        line_up(name="Hosts that must switch are queued in inventory order")
        switch(name="Each endpoint runs its wanted release and has answered")


def restart_dockerd_in_turn() -> None:
    """Declare that dockerd may be restarted under serving endpoints, in the turn that `endpoint()` gives a host."""
    if counts(DOCKERD.name):
        with noted(DOCKERD.name):
            pass


@operation()
def line_up() -> Commands:
    """Put hosts whose endpoints must switch into the turn queue, in inventory order; changes nothing."""
    host = this_host()
    changes = yield from _after_earlier_switches(
        host, lambda reading: pending(declared_of(host).steps, settings_of(host), reading)
    )
    reading = reading_of(host)
    if changes is not None and reading is not None and host.state.is_executing and not left_drained(host, reading):
        moves = listens_elsewhere(settings_of(host), reading)
        queue_up(host, reading, changes, _diff(host, reading) if changes else "", moves)


def _after_earlier_switches(
    host: Host, decide: Callable[[HostReading], Sequence[Change]]
) -> Generator[PyinfraCommand, None, list[Change] | None]:
    """Return what is to be changed, once switches have ended that earlier runs began: they outlive their leases."""
    while True:
        changes = yield from leased_changes(host, decide)
        try:
            if not host.state.is_executing or not _waited(host, changes or ()):
                return changes
            state_of(host).stale = True
            _write_releases_again(host)
        except StepFailedError as error:
            yield fail(str(error))
            return None


def _write_releases_again(host: Host) -> None:
    """Write what this run had written, and the commit of the switch that it waited for has removed.

    Jobs up to version 0.1 keep only what they know. Raises StepFailedError.
    """
    reading = reading_of(host)
    if reading is None or RELEASE.name not in declared_of(host).steps:
        return
    if changes := RELEASE.pending(settings_of(host), reading):
        announce_changes(host, changes)
        carry_out_all(host, changes)
        state_of(host).stale = True


def _waited(host: Host, changes: Sequence[Change]) -> bool:
    """Wait for a switch under way to another release than these changes want. True when there was one."""
    steps = [step for change in changes for step in change.steps if isinstance(step, Proved | DaemonRestart)]
    return any(await_earlier(host, step) for step in steps)


def pending(steps: Collection[str], settings: HostSettings, reading: HostReading) -> list[Change]:
    """Return what waits for the host's turn: dockerd, which all of its endpoints need, before the endpoints themselves.

    steps: those that deploy.py calls for the host.
    """
    return [change for concern in IN_TURN if concern.name in steps for change in concern.pending(settings, reading)]


def _diff(host: Host, reading: HostReading) -> str:
    """Return daemon.json, engine YAML and unit, before and after, as `rackwright plan` shows them."""
    planned = plan_host(host.name, settings_of(host), reading, declared_of(host)).changes
    names = [concern.name for concern in IN_TURN]
    return "\n".join(change.diff for change in planned if change.concern in names and change.diff)


def left_drained(host: Host, reading: HostReading) -> bool:
    """Return whether an operator has drained the host, and report then that its endpoints are left unchanged."""
    mark = reading[DRAINED].drained
    if mark is None:
        return False
    text = f"{mark}; its endpoints are left as they are; next: rackwright undrain INVENTORY --limit {host.name}"
    note("host", host=host.name, state=RunState.DRAINED, text=text)
    say(host, text, "yellow")
    return True


def queue_up(
    host: Host, reading: HostReading, changes: Sequence[Change], diff: str = "", moves: bool = False, boot: str = ""
) -> None:
    """Let a host take part: it counts for the limits, and must switch when there are changes.

    moves: whether endpoints move to another port. boot: the one that is to end.
    """
    settings, cut = settings_of(host), was_cut(host.name) or reading[DOCKER].restarting
    before = {name: endpoint.proven for name, endpoint in reading[ENDPOINT].endpoints.items() if endpoint.proven}
    together = group_turn_of(host)
    if together is not None and together.group.head.host != host.name:
        line_up_member(together, MemberTurn(host, changes, before, boot, moves and is_ours(reading)))
        return
    order = [other.name for other in host.state.inventory].index(host.name)
    counts_as_serving = serves(reading) or cut or settings.is_gateway
    member = RunHost(host.name, order, domains_together(host, domains_of), counts_as_serving, settings)
    turns = switch_queue_of(host)
    turns.add(member)

    def announce() -> None:
        others = tuple(together.others.values()) if together else ()
        if not changes and not any(one.changes for one in others):
            note("host", host=host.name, state=RunState.UNCHANGED)
            note_others(others, RunState.UNCHANGED)
            return
        joins = any(is_join(change) for one in others for change in one.changes)
        welcomes = joins and not changes
        turn_changes = _welcome(settings, reading) if welcomes else changes
        node = node_of(member, shape_of(settings, reading), takes_capacity(turn_changes, reading[ENDPOINT]) or cut)
        if has_common_address(settings, reading) and node.rank != FIRST:
            node = replace(node, rank=LAST)  # so that the address moves once
        quarantined = any(mark.name == QUARANTINE for mark in reading[DRAINED].marks)
        turn = HostTurn(
            turn_changes, before, member.serving, diff, moves and is_ours(reading), others, boot, quarantined, welcomes
        )
        turns.hosts[host.name] = host
        turns.turns.announce(node, partial(_switch_host, host, turn))
        if in_rollout():
            turns.keepers[host.name] = lambda: keep_slice(host)
            turns.bake(host.name, lambda last: _bake_host(host, last))
        if together is not None:
            together.is_announced = True

    if together is None:
        announce()
    else:
        line_up_head(together, announce)


def _welcome(settings: HostSettings, reading: HostReading) -> Sequence[Change]:
    """Return the changes of an otherwise unchanged head when hosts rejoin it: they start together in any case.

    They come with the wanted release, so it takes that one too, even where it would wait for the next switch.
    """
    adopting = settings.model_copy(update={"rollout": settings.rollout.model_copy(update={"adopt": True})})
    return ENDPOINT.pending(adopting, reading) or ask_again(settings, reading)


@dataclass(frozen=True)
class HostTurn:
    """The work of a host in its turn."""

    changes: Sequence[Change]
    before: Mapping[str, str]
    """Proven release by endpoint."""
    served: bool
    """True if it served when it was queued."""
    diff: str
    moves: bool
    """True if endpoints move to another port, so that the rules of the old one must go."""
    others: Sequence[MemberTurn] = ()
    """The other hosts of its endpoint, which follow it."""
    boot: str = ""
    """The host's boot that is to end; empty when it is not restarted."""
    quarantined: bool = False
    """True if it has the mark of a quarantine, which ends with this turn."""
    welcomes: bool = False
    """True if it had nothing to change itself, and takes part for the other hosts."""


def _switch_host(host: Host, turn: HostTurn) -> Outcome:
    try:
        turn = _under_lease(host, turn)
        if switch_queue_of(host).turns.is_canary(host.name):
            part_of(host.state, Canaries).names.add(host.name)
            part_of(host.state, PeerFinders).by_host[host.name] = partial(peers_of, host)
        _begin_turn(host, turn)
        refuse_unable(turn.others, turn.changes)
        restart, remaining = _restart_first(turn)
        with one_driver(host, turn.changes, turn.others):
            carry_out_all(host, restart)
            perform_others(turn.others, Stage.BEFORE)
            perform_others(turn.others, Stage.BACK)
            with _rules_of_what_serves(host, turn):
                carry_out_all(host, _after_dockerd(host, remaining.changes))
            perform_others(turn.others, Stage.AFTER)
            for one in turn.others:
                if one.moves:
                    _let_rules_follow(one.host)
        _probe_as_non_member(host)
    except StepFailedError as error:
        return _failed_turn(host, turn, error)
    finally:
        # Another host's turn may have read this one while it was switching.
        state_of(host).stale = True
        end_others(turn.others)
    note("host", host=host.name, state=RunState.SWITCHED)
    if turn.quarantined:
        remote(host, command_of(Shell(release_script(), timeout=30)), quiet=True)
    keep_slice(host)
    note_others(turn.others, RunState.SWITCHED)
    return Outcome()


def _under_lease(host: Host, turn: HostTurn) -> HostTurn:
    """Return the turn of a host whose lease this run has: one with nothing to change itself may have taken none before.

    Raises StepFailedError.
    """
    reading = lease_for_others(host) if turn.welcomes else None
    if reading is None:
        return turn
    settings = settings_of(host)
    return replace(turn, changes=pending(declared_of(host).steps, settings, reading) or _welcome(settings, reading))


def _begin_turn(host: Host, turn: HostTurn) -> None:
    announce_changes(host, turn.changes)
    sentences = [change.sentence for change in turn.changes]
    fields: dict[str, Any] = {"before": dict(turn.before), "changes": sentences, "diff": turn.diff or None}
    fields["boot"] = turn.boot or None
    note("host", host=host.name, state=RunState.SWITCHING, **fields)
    keep_slice(host)
    begin_others(turn.others)


def _failed_turn(host: Host, turn: HostTurn, error: StepFailedError) -> Outcome:
    """Say and note how a turn has failed, for all hosts that take part in it."""
    together = group_turn_of(host)
    if together is not None and isinstance(error, NothingServesError):
        with_more(error, how_together(together))
    complain(host, str(error))
    outcome = outcome_of(error, may_still_serve(turn.served, turn.boot, settings_of(host)))
    first = outcome.reasons[0]
    fields: dict[str, Any] = {"cause": first.cause, "check": first.check, "text": str(error), "code": error.code}
    fields["unseen"] = isinstance(error, UnknownEndError) or None
    note("host", host=host.name, state=state_after(error, turn.served), **fields)
    keep_slice(host)
    note_others(turn.others, state_after(error, turn.served), **fields)
    return outcome


def _restart_first(turn: HostTurn) -> tuple[list[Change], HostTurn]:
    """Split off a head's restart, at which its clients are drained: it goes before what the other hosts do."""
    first = [change for change in turn.changes if any(isinstance(step, HostRestart) for step in change.steps)]
    first = first if turn.others else []
    return first, replace(turn, changes=[change for change in turn.changes if change not in first])


def _probe_as_non_member(host: Host) -> None:
    """Let only the hosts of an endpoint reach what connects them; a host that serves alone is not asked."""
    settings = settings_of(host)
    if settings.group is not None:
        refuse_non_members(host, settings.group, settings.all_endpoints[settings.group.endpoint].port)


@contextmanager
def _rules_of_what_serves(host: Host, turn: HostTurn) -> Iterator[None]:
    """Set a host's rules to those of what serves, whatever comes of its changes."""
    try:
        yield
    finally:
        if turn.moves:
            _let_rules_follow(host)


def _let_rules_follow(host: Host) -> None:
    """Close ports that no longer have a listener. A failure is reported, and does not count against the release."""
    state_of(host).stale = True
    reading = reading_of(host)
    try:
        changes = FIREWALL_AS_SERVED.pending(settings_of(host), reading) if reading is not None else []
        announce_changes(host, changes)
        carry_out_all(host, changes)
    except StepFailedError as error:
        text = f"the rules of a port without a listener could not be taken away: {error.text}"
        complain(host, coded(error.code, text))


def _after_dockerd(host: Host, changes: Sequence[Change]) -> Sequence[Change]:
    """Restart dockerd where a change asks for it; return the changes left, decided again by a new reading.

    Raises StepFailedError.
    """
    restarts = [change for change in changes if any(isinstance(step, DaemonRestart) for step in change.steps)]
    if not restarts:
        return changes
    carry_out_all(host, restarts)
    state_of(host).stale = True
    reading = reading_of(host)
    if reading is None:
        raise StepFailedError(
            "dockerd was restarted, and the host could not be read again; see the line above", code="RW1102"
        )
    announced = {change.sentence for change in changes}
    remaining = ENDPOINT.pending(settings_of(host), reading)
    announce_changes(host, [change for change in remaining if change.sentence not in announced])
    return remaining


def _bake_host(host: Host, last: bool) -> Outcome:
    """Return whether a host that has switched still serves what it was switched to; asked for a token the last time."""
    reading, endpoints = reading_of(host), settings_of(host).all_endpoints
    try:
        for step in gateway_answers(settings_of(host), seconds=GATEWAY_BAKE):
            perform(host, [step])
    except StepFailedError as error:
        return _failed_afterwards(host, error, serves=False)
    for name, endpoint in reading[ENDPOINT].endpoints.items() if reading else ():
        if endpoint.proven is None or not endpoint.spec:
            continue
        rows = bake_rows(name, endpoint.proven, endpoint.spec, endpoints.get(name) if last else None)
        try:
            ask_all(host, name, rows, again=True)
        except StepFailedError as error:
            return _failed_afterwards(host, error, serves=True)
    return Outcome()


def _failed_afterwards(host: Host, error: StepFailedError, serves: bool) -> Outcome:
    """Say and note how a host has failed after its turn."""
    complain(host, str(error))
    note("host", host=host.name, state=RunState.AFTERWARDS, text=str(error))
    keep_slice(host)
    return outcome_of(error, served=serves)


@operation()
def switch() -> Commands:
    """Switch endpoints to their wanted release, host by host in turn, and ask each one."""
    host = this_host()
    reading = reading_of(host)
    if reading is None:
        yield from unreadable(host)
        return
    if lacks(host.state, host.name):
        return
    changes = pending(declared_of(host).steps, settings_of(host), reading)
    if not host.state.is_executing:
        announce_changes(host, changes)
    else:
        _tell_deferred(host, reading)
    together = group_turn_of(host) if host.state.is_executing else None
    if together is not None and together.absent and changes:
        yield FunctionCommand(_leave_absent, (), {})
    elif together.is_announced if together is not None else changes:
        yield FunctionCommand(_take_turn, (), {})
    elif host.state.is_executing:
        yield from _wait_for_loading(host, waits(settings_of(host), reading[ENDPOINT]))


def _tell_deferred(host: Host, reading: HostReading) -> None:
    for text in adopted_later(ENDPOINT.wanted(settings_of(host), reading), reading[ENDPOINT]):
        say(host, text)


def _wait_for_loading(host: Host, jobs: Sequence[Job]) -> Commands:
    """Wait for what loads. That is not a command: it changes nothing; an endpoint that does not come up is an error."""
    for job in jobs:
        try:
            run_job(host, job)
        except StepFailedError as error:
            yield fail(str(error))


def _take_turn(state: State, host: Host) -> bool:  # noqa: ARG001 - pyinfra passes both by name
    turns, name = switch_queue_of(host).turns, turn_name(host)
    if turns.pass_through(name):
        return True
    if name in turns.failed():
        return False
    stoppers = [other for other in turns.failed() if other != name]
    if turns.held:
        _leave(host, turns.held)
    elif stoppers:
        _leave(host, f"{', '.join(stoppers)} failed before it")
    return False


def _leave_absent(state: State, host: Host) -> bool:  # noqa: ARG001 - pyinfra passes both by name
    """Say that a group has no turn, because hosts of it have failed before."""
    together = group_turn_of(host)
    absent = together.absent if together else []
    _leave(host, f"{', '.join(absent)}, which serve{'s' * (len(absent) == 1)} its endpoint with it, failed before")
    return False


def _leave(host: Host, why: str) -> None:
    """Say that a host's turn never came; it is a state, and no error of the host's."""
    text = f"not switched: {why}; the previous release serves"
    note("host", host=host.name, state=RunState.NOT_SWITCHED, text=text)
    shout(host, text)


@operation()
def line_up_back() -> Commands:
    """Put hosts that roll back into the turn queue: what rolls back to the release in the handover."""
    host = this_host()
    if not host.state.is_executing:
        return
    changes = yield from _after_earlier_switches(host, lambda reading: _ways_back(host, reading))
    reading = reading_of(host)
    if changes is None or reading is None or left_drained(host, reading):
        return
    refusals = [step.message for change in changes for step in change.steps if isinstance(step, Refuse)]
    if not refusals:
        queue_up(host, reading, changes, moves=bool(new_addresses(reading, _places(changes))))
        return
    note("host", host=host.name, state=RunState.REFUSED, text="; ".join(refusals))
    for text in refusals:
        yield fail(text)


def _ways_back(host: Host, reading: HostReading) -> list[Change]:
    if reading[DRAINED].drained is not None:
        return []
    ok, output = remote(host, command_of(Shell(read_script())))
    if not ok:
        raise StepFailedError(f"its kept releases could not be read: {tail(output)}", code="RW1101")
    endpoints = reading[ENDPOINT].endpoints
    wanted = releases_asked(received().releases, host.name, [*endpoints, *reading[ENDPOINT].replaced])
    retained = parse_kept(output.stdout_lines)
    note("target", host=host.name, to=targets_of(endpoints, retained, wanted))
    settings = settings_of(host)
    bindings = {name: binding_of(endpoint, reading, settings) for name, endpoint in settings.all_endpoints.items()}
    found = back_changes(settings, endpoints, retained, wanted, bindings)
    elsewhere = new_addresses(reading, _places(found))
    # The rules of a port are there before anything listens on it.
    return [*opening_changes(settings, reading, elsewhere), *found] if elsewhere and is_ours(reading) else found


def _places(changes: Iterable[Change]) -> dict[str, ListenAddress]:
    """Return where endpoints roll back to, by name."""
    steps = [step for change in changes for step in change.steps if isinstance(step, Proved)]
    return {step.endpoint: ListenAddress(*step.listens) for step in steps if step.listens}


@operation()
def switch_back() -> Commands:
    """Bring endpoints back to an earlier release, host by host in turn, and ask each one."""
    host = this_host()
    if turn_name(host) in switch_queue_of(host).turns.entries:
        yield FunctionCommand(_take_turn, (), {})
