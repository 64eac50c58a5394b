"""The turn of a group: its head switches, and the other hosts of its endpoint take part in it.

They count as one: one place in the turn queue, under the head's name, once each of them has lined up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rackwright.adapter.command_output import tail
from rackwright.adapter.host import Host
from rackwright.adapter.run.inventories import groups_of, settings_of
from rackwright.adapter.run_context import part_of
from rackwright.concerns.endpoint.group.members import Stage, stage_of
from rackwright.concerns.endpoint.switch.job import can_start_script
from rackwright.concerns.endpoint.switch.steps import Proved
from rackwright.concerns.lease.run_slice import keep_slice
from rackwright.messages import coded
from rackwright.operations.hostrun import announce_changes, carry_out, mark_changed, state_of
from rackwright.paths import unit_name
from rackwright.plan.change import Change, Shell
from rackwright.record.cause import Cause, Reason
from rackwright.record.journal import note
from rackwright.record.states import RunState
from rackwright.remote.commands import command_of, complain, remote
from rackwright.remote.errors import StepFailedError
from rackwright.settings.group import Group


@dataclass(frozen=True)
class MemberTurn:
    """The work of a member that is not the head in its head's turn."""

    host: Host
    changes: Sequence[Change]
    before: dict[str, str]
    """Proven release by endpoint."""
    boot: str = ""
    """The host's boot that is to end; empty when it is not restarted."""
    moves: bool = False
    """True if endpoints move to another port or address, so that the rules of the old one must go."""


@dataclass
class GroupTurn:
    """The hosts of one endpoint, as they line up."""

    group: Group
    others: dict[str, MemberTurn] = field(default_factory=dict)
    lined_up: set[str] = field(default_factory=set)
    announce: Callable[[], None] | None = None
    """Puts the head into the turn queue; known once the head has lined up."""
    is_announced: bool = False

    @property
    def absent(self) -> list[str]:
        """Members that have not lined up: they have failed before."""
        return [host for host in self.group.hosts if host not in self.lined_up]


@dataclass
class RunGroups:
    """All groups of a run, by their heads."""

    by_head: dict[str, GroupTurn] = field(default_factory=dict)


def group_turn_of(host: Host) -> GroupTurn | None:
    """Return the turn of the group that a host is in; None for a host that serves alone."""
    group = settings_of(host).group
    if group is None:
        return None
    return part_of(host.state, RunGroups).by_head.setdefault(group.head.host, GroupTurn(group))


def turn_name(host: Host) -> str:
    """Return the name of a host in the turn queue: that of its head."""
    group = settings_of(host).group
    return group.head.host if group else host.name


def line_up_member(turn: GroupTurn, member: MemberTurn) -> None:
    """Let a member that is not the head take part."""
    turn.others[member.host.name] = member
    _lined_up(turn, member.host.name)


def line_up_head(turn: GroupTurn, announce: Callable[[], None]) -> None:
    """Let the head take part. announce: puts it into the turn queue, when the whole group has something to do."""
    turn.announce = announce
    _lined_up(turn, turn.group.head.host)


def _lined_up(turn: GroupTurn, name: str) -> None:
    turn.lined_up.add(name)
    if not turn.absent and turn.announce is not None and not turn.is_announced:
        turn.announce()


def domains_together(host: Host, domains_of: Callable[[Sequence[str], str | None], tuple[str, ...]]) -> tuple[str, ...]:
    """Return the failure domains of all members of a host's group, each once."""
    group = settings_of(host).group
    names = group.hosts if group else (host.name,)
    hosts = [host.state.inventory.get_host(name) for name in names]
    found = [domain for one in hosts for domain in domains_of(groups_of(one), settings_of(one).hardware.rack)]
    return tuple(dict.fromkeys(found))


# -- in the turn


def note_others(others: Iterable[MemberTurn], state: RunState, **fields: Any) -> None:
    """Note the same of the other members as of their head."""
    for one in others:
        note("host", host=one.host.name, state=state, **fields)
        keep_slice(one.host)


def begin_others(others: Iterable[MemberTurn]) -> None:
    """Announce what the other members do, and note that they switch."""
    for one in others:
        announce_changes(one.host, one.changes)
        sentences = [change.sentence for change in one.changes]
        fields = {"before": dict(one.before), "changes": sentences, "diff": None, "boot": one.boot or None}
        note("host", host=one.host.name, state=RunState.SWITCHING, **fields)
        keep_slice(one.host)


def how_together(turn: GroupTurn) -> str:
    """Return what to do about hosts that serve nothing after their switch, for people."""
    group = turn.group
    unit, others = unit_name(group.endpoint), " ".join(member.address for member in group.members[1:])
    return (
        f"its hosts start together automatically as soon as they match {group.head.host} again; next, on "
        f"{group.head.host}: journalctl -u {unit} --lines 20; for one in {others}; do ping -c 3 -I "
        f"{group.head.address} $one; done; on {', '.join(group.hosts[1:])}: systemctl status {unit}"
    )


def perform_others(others: Iterable[MemberTurn], stage: Stage) -> None:
    """Carry out what the other members do at one stage of their head's turn."""
    for one in others:
        for change in (change for change in one.changes if stage_of(change) is stage):
            mark_changed(one.host)
            try:
                carry_out(one.host, change)
            except StepFailedError as error:
                complain(one.host, coded(error.code, error.text))
                error.args = (f"{one.host.name}: {error.text}",)
                raise


def refuse_unable(others: Iterable[MemberTurn], changes: Iterable[Change]) -> None:
    """Raise StepFailedError before a head's switch, where a member could not start what it is to start with it.

    changes: the head's. The head asks the same of itself, in its own job.
    """
    proofs = [step for change in changes for step in change.steps if isinstance(step, Proved) and step.restarts]
    for one in others:
        for proof in proofs:
            name = proof.endpoint
            releases = [(name, proof.release), (name, one.before.get(name))]
            asking = command_of(Shell(can_start_script(name, releases, publishes=False)))
            ok, output = remote(one.host, asking, twice=True)
            if not ok:
                why = f"{one.host.name}: {tail(output)}"
                text = f"endpoint {name} was not switched, the previous release still serves: {why}"
                raise StepFailedError(text, (Reason(Cause.DOCKER, "what a start needs"),), code="RW1112")


def end_others(others: Iterable[MemberTurn]) -> None:
    """Mark the other members' readings as stale after a turn, whatever came of it."""
    for one in others:
        state_of(one.host).stale = True
