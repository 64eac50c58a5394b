"""Hosts that a run was not begun for, and that have a model which its hosts lack: they hand it on to these.

Such a host is read, and its lease is held until its job runs: it changes nothing there, and the host's next writer need
not wait for a transfer. The run's record says nothing of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from rackwright.adapter.concurrency import new_event, side_by_side, spawn
from rackwright.adapter.connection import LOST, close, connect
from rackwright.adapter.host import Host, acting_on, say
from rackwright.adapter.run.inventories import settings_beside, settings_of
from rackwright.concerns.endpoint.concern import ENDPOINT
from rackwright.concerns.image import IMAGE
from rackwright.concerns.lease import LEASED
from rackwright.concerns.lease.own_leases import hold_of
from rackwright.concerns.lease.take_lease import give_back, take
from rackwright.concerns.models import MODELS, sharers
from rackwright.concerns.models.fleet import Fleet, asked_for, label_of, nearest, without_source
from rackwright.concerns.read_host import read_concerns
from rackwright.messages import RackwrightError, few
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
READ = (IMAGE, MODELS, ENDPOINT, LEASED)
"""Concerns that are read of such a host."""


@dataclass(frozen=True)
class OutsideHost:
    """A host outside the run that has models which the run's hosts lack; its lease is taken."""

    host: Host
    settings: HostSettings
    reading: HostReading
    has: Mapping[str, Sharer]


def found_outside(host: Host, fleet: Fleet) -> list[OutsideHost]:
    """Return hosts that have what no host of the run has, the nearest first. host: one of the run."""
    lacking = {model: first for model, first in without_source(fleet).items() if _may_ask(host, first)}
    if not lacking:
        return []
    in_run = {one.name for one in host.state.inventory if host.state.is_host_in_limit(one)}
    others = [one for one in host.state.inventory if one.name not in in_run]
    given = {name: one for name, one in settings_beside(others).items() if asked_for(one) & lacking.keys()}
    order = [one.name for one in host.state.inventory]
    first = next(iter(lacking.values()))
    candidates = [name for name in nearest(order, first) if name in given][: AT_ONCE * ROUNDS]
    if candidates:
        text = f"{few([label_of(model) for model in lacking])}: no host of this run has it; asking {few(candidates)}"
        say(host.state.inventory.get_host(first), f"  {text}")
    return _asked(host, [(name, given[name]) for name in candidates], frozenset(lacking))


def _may_ask(host: Host, first: str) -> bool:
    found = settings_of(host.state.inventory.get_host(first)).downloads.hand_on
    return found is not None and found.neighbours


def _asked(host: Host, candidates: Sequence[tuple[str, HostSettings]], lacking: frozenset[str]) -> list[OutsideHost]:
    """Return those that have one of the models; no more are asked once each model has enough hosts."""
    found: list[OutsideHost] = []
    for start in range(0, len(candidates), AT_ONCE):
        lot = candidates[start : start + AT_ONCE]
        looked = side_by_side(lambda one: _look(host.state.inventory.get_host(one[0]), one[1], lacking), lot, AT_ONCE)
        found += [one for one in looked if one is not None]
        if all(sum(model in one.has for one in found) >= KEEPERS for model in lacking):
            break
    return found


def _look(host: Host, settings: HostSettings, lacking: frozenset[str]) -> OutsideHost | None:
    """Read a host, and take its lease if it has one of the models; None where it cannot hand one on."""
    try:
        with acting_on(host):
            connect(host)
            reading = read_concerns(host, settings, READ)
            all_of = sharers(host.name, settings, reading, serves(reading))
            has = {model: replace(one, outside=True) for model, one in all_of.items() if model in lacking and one.has}
            if has:
                take(host, reading[LEASED], outside=True)
                return OutsideHost(host, settings, reading, has)
    except (RackwrightError, *LOST) as error:
        say(host, f"  hands nothing on: {error}", "yellow")
    close(host)
    return None


# -- the transfer


def leave(one: OutsideHost) -> None:
    """Let a host go that is not needed."""
    _give_back(one.host)
    close(one.host)


def hand_on(one: OutsideHost, hands_on: HandsOn) -> None:
    """Have a host hand on what the run's hosts lack, until they have it; returns at once."""
    reading = replace(one.reading, hands_on=hands_on)
    jobs = [model.keeps for model in MODELS.wanted(one.settings, reading) if model.keeps is not None]
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
    close(one.host)


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
