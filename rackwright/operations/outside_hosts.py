"""Hosts that a run was not begun for, and that have a model or image which its hosts lack: they hand it on to these.

Such a host is read, and its lease is held until its job runs: it changes nothing there, and the host's next writer need
not wait for a transfer. The run's record says nothing of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from rackwright.adapter.concurrency import new_event, side_by_side, sleep, spawn
from rackwright.adapter.connection import LOST, close, connect
from rackwright.adapter.host import Host, acting_on, say
from rackwright.adapter.run.inventories import settings_beside, settings_of
from rackwright.adapter.run_context import part_of
from rackwright.concerns.handed_images import label_of
from rackwright.concerns.lease import LEASED
from rackwright.concerns.lease.own_leases import hold_of
from rackwright.concerns.lease.take_lease import LeaseHeldError, give_back, take
from rackwright.concerns.models.fleet import Fleet, nearest, without_source
from rackwright.concerns.read_host import read_concerns
from rackwright.messages import RackwrightError, few
from rackwright.operations.handed_kinds import HandedKind
from rackwright.plan.change import Job
from rackwright.plan.concern import HostReading
from rackwright.plan.hand_on import KEEPERS, HandsOn, Sharer
from rackwright.remote.errors import StepFailedError
from rackwright.remote.jobs import raise_or_report, show_job
from rackwright.rollout.run_hosts import serves
from rackwright.settings.host_settings import HostSettings

if TYPE_CHECKING:
    from rackwright.adapter.concurrency import Event

AT_ONCE, ROUNDS = 4, 3
"""Hosts that are asked at the same time, and how many times so many, before the hub is asked."""
AGAIN, PAUSE = 4, 10
"""Times that hosts which another run writes to are asked again, where no other one has it, and seconds between."""

Candidate = tuple[Host, HostSettings]


@dataclass(frozen=True)
class OutsideHost:
    """A host outside the run that has what the run's hosts lack; its lease is taken."""

    kind: HandedKind
    host: Host
    settings: HostSettings
    reading: HostReading
    has: Mapping[str, Sharer]

    def is_free(self, name: str) -> bool:
        """Return True if it has a model or an image, and hands it on to no other run now."""
        return name in self.has and not self.has[name].busy


def found_outside(host: Host, fleet: Fleet, kind: HandedKind) -> list[OutsideHost]:
    """Return hosts that have what no host of the run has, the nearest first. host: one of the run."""
    lacking = {name: first for name, first in without_source(fleet).items() if _may_ask(host, first)}
    if not lacking:
        return []
    in_run = {one.name for one in host.state.inventory if host.state.is_host_in_limit(one)}
    others = [one for one in host.state.inventory if one.name not in in_run]
    given = {name: one for name, one in settings_beside(others).items() if kind.asked_for(one) & lacking.keys()}
    order = [one.name for one in host.state.inventory]
    first = next(iter(lacking.values()))
    candidates = [name for name in nearest(order, first) if name in given][: AT_ONCE * ROUNDS]

    def tell(text: str) -> None:
        named = few([label_of(name) for name in lacking])
        say(host.state.inventory.get_host(first), f"  {named}: no host of this run has it; {text}")

    if candidates:
        tell(f"asking {few(candidates)}")
    hosts = [(host.state.inventory.get_host(name), given[name]) for name in candidates]
    return _asked(kind, hosts, frozenset(lacking), tell)


def _may_ask(host: Host, first: str) -> bool:
    found = settings_of(host.state.inventory.get_host(first)).downloads.hand_on
    return found is not None and found.neighbours


def _asked(
    kind: HandedKind, candidates: Sequence[Candidate], lacking: frozenset[str], tell: Callable[[str], None]
) -> list[OutsideHost]:
    """Return those that have one of the names; hosts that another run writes to are asked again for a while.

    Another run that only has them hand something on leaves them within seconds.
    """
    found, held = _looked(kind, candidates, lacking)
    for _ in range(AGAIN):
        if not held or all(any(name in one.has for one in found) for name in lacking):
            break
        tell(f"asking {few([host.name for host, _ in held])} again in {PAUSE} s")
        sleep(PAUSE)
        more, held = _looked(kind, held, lacking)
        found += more
    return found


def _looked(
    kind: HandedKind, candidates: Sequence[Candidate], lacking: frozenset[str]
) -> tuple[list[OutsideHost], list[Candidate]]:
    """Return those that have one of the names, and those that another run writes to.

    No more are asked once each name has enough hosts that are free.
    """
    found, held = list[OutsideHost](), list[Candidate]()
    for start in range(0, len(candidates), AT_ONCE):
        lot = candidates[start : start + AT_ONCE]
        looked = side_by_side(lambda one: _look(*one, kind, lacking, held), lot, AT_ONCE)
        found += [one for one in looked if one is not None]
        if all(sum(one.is_free(name) for one in found) >= KEEPERS for name in lacking):
            break
    return found, held


def _look(
    host: Host, settings: HostSettings, kind: HandedKind, lacking: frozenset[str], held: list[Candidate]
) -> OutsideHost | None:
    """Read a host, and take its lease if it has one of the names; None where it cannot hand one on.

    held: gets it where another run has its lease.
    """
    try:
        with acting_on(host):
            _open(host)
            reading = read_concerns(host, settings, kind.read)
            all_of = kind.sharers(host.name, settings, reading, serves(reading))
            has = {name: replace(one, outside=True) for name, one in all_of.items() if name in lacking and one.has}
            if has:
                take(host, reading[LEASED], outside=True)
                return OutsideHost(kind, host, settings, reading, has)
    except (RackwrightError, *LOST) as error:
        say(host, f"  hands nothing on: {error}", "yellow")
        if isinstance(error, RackwrightError) and error.code == LeaseHeldError.code:
            held.append((host, settings))
    _close(host)
    return None


# -- the connection


@dataclass(frozen=True)
class OutsideConnections:
    """The number of transfers that need the connection to each host outside the run."""

    users: Counter[str] = field(default_factory=Counter)


def _open(host: Host) -> None:
    """Connect to a host, unless a transfer of another kind has its connection. Raises one of LOST."""
    users = part_of(host.state, OutsideConnections).users
    users[host.name] += 1
    if users[host.name] == 1:
        connect(host)


def _close(host: Host) -> None:
    """Close a host's connection once no transfer needs it."""
    users = part_of(host.state, OutsideConnections).users
    users[host.name] -= 1
    if users[host.name] == 0:
        close(host)


# -- the transfer


def leave(one: OutsideHost) -> None:
    """Let a host go that is not needed."""
    _give_back(one.host)
    _close(one.host)


def hand_on(one: OutsideHost, hands_on: HandsOn) -> None:
    """Have a host hand on what the run's hosts lack, until they have it; returns at once."""
    jobs = one.kind.keepers(one.settings, replace(one.reading, hands_on=hands_on))
    spawn(
        partial(_carry_out, one, [replace(job, waits=True, outside=True) for job in jobs]), f"{one.host.name} hands on"
    )


def _carry_out(one: OutsideHost, jobs: Sequence[Job]) -> None:
    begun = [new_event() for _ in jobs]
    threads = [spawn(partial(_follow, one.host, job, event)) for job, event in zip(jobs, begun, strict=True)]
    for event in begun:
        event.wait()
    _give_back(one.host)
    for thread in threads:
        thread.join()
    _close(one.host)


def _follow(host: Host, job: Job, begun: Event) -> None:
    try:
        ended = show_job(host, job, lambda text: say(host, f"  {job.title}: {text}"), begun.set)
        if ended.status != 0:
            raise_or_report(host, job, f"{job.title}: {ended.text}")
    except StepFailedError as error:
        say(host, f"  {error}; the other hosts look for another source", "yellow")
    finally:
        begun.set()


def _give_back(host: Host) -> None:
    if hold := hold_of(host):
        give_back(host, hold)
