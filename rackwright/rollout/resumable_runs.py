"""The run that a resume means: the one that has something left, or, when in doubt, all that may be meant. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from rackwright.messages import RackwrightError
from rackwright.record.record import BY_HAND, DRAIN, DRIVERS, FORWARD, REBOOT, TEARDOWN, UNDRAIN, Record
from rackwright.record.states import WELL, RunState
from rackwright.rollout.resuming import is_resumable, refuse_living, rest_of

SHOWN = 5
"""The most hosts of a candidate that are listed."""


@dataclass(frozen=True)
class Candidate:
    """A run that could be resumed."""

    record: Record
    remaining: tuple[str, ...]
    overtaken: tuple[str, ...] = ()
    """Hosts of these that a later run has worked on."""


def effective(record: Record, refused: Collection[str]) -> Record:
    """Return a run as a resume must see it: one that was refused has resumed nothing.

    refused: names of the runs that were.
    """
    return replace(record, resumed_by=None) if record.resumed_by in refused else record


def refused_runs(found: Sequence[Record]) -> set[str]:
    """Names of the runs that could begin nothing."""
    return {record.id for record in found if record.is_refused}


def candidates(found: Sequence[Record]) -> list[Candidate]:
    """Return runs with remaining hosts that no later run has taken on, the newest first.

    found: a site's runs, the oldest first.
    """
    refused = refused_runs(found)
    return [one for at in reversed(range(len(found))) if (one := _candidate(found, at, refused)) is not None]


def overtaken_runs(found: Sequence[Record]) -> set[str]:
    """Names of the runs with something left that later ones took over whole: there is nothing to resume.

    found: a site's runs, the oldest first.
    """
    still = {one.record.id for one in candidates(found)}
    return {record.id for record in found if record.id not in still and _leaves_something(record)}


def _leaves_something(record: Record) -> bool:
    try:
        return bool(rest_of(record).hosts)
    except RackwrightError:
        return False


def _candidate(found: Sequence[Record], at: int, refused: Collection[str]) -> Candidate | None:
    record = effective(found[at], refused)
    try:
        remaining = rest_of(record).hosts
    except RackwrightError:
        return None
    later = [other for other in found[at + 1 :] if other.id not in refused]
    overtaken = tuple(host for host in remaining if any(_overtakes(other, record, host) for other in later))
    return None if len(overtaken) == len(remaining) else Candidate(record, remaining, overtaken)


MAINTENANCE = {DRAIN: (DRAIN, UNDRAIN), UNDRAIN: (DRAIN, UNDRAIN), REBOOT: (REBOOT, DRIVERS), DRIVERS: (DRIVERS,)}
"""Purposes that take over what remains of a host's maintenance. It changes no release, and takes over nothing else."""


def _overtakes(later: Record, earlier: Record, host: str) -> bool:
    """Return True if what remains of a host from an earlier run is the later one's business now.

    A plain deploy asks for less than a rollout, so it takes over only what it has done.
    """
    one, other = (str(record.begin.get("purpose")) for record in (earlier, later))
    if one in MAINTENANCE or other in MAINTENANCE:
        return other in MAINTENANCE.get(one, ()) and host in later.hosts
    if later.begin.get("purpose") in (FORWARD, BY_HAND, TEARDOWN):
        return host in later.hosts
    return later.states.get(host) in WELL


def chosen(found: Sequence[Record]) -> Record:
    """Return the run that is to be resumed.

    found: a site's runs, the oldest first. Raises RackwrightError without such a run, when one is still under way, and
    with the list of them when there may be more than one.
    """
    refused = refused_runs(found)
    for record in reversed(found):
        if is_resumable(record):
            refuse_living(record)
    possible = _without_drained(candidates(found))
    if len(possible) == 1 and not possible[0].overtaken:
        return possible[0].record
    if possible:
        raise RackwrightError("\n".join(_listed(possible)), code="RW0803")
    newest = [record for record in found if record.id not in refused] or list(found)
    if not newest:
        raise RackwrightError(
            "no run has left a record here yet: records stay on the machine that began the run, unless machines share "
            "their folder (RACKWRIGHT_RUNS), but hosts keep what resuming takes; next: "
            "rackwright resume -i INVENTORY",
            code="RW0804",
        )
    rest_of(effective(newest[-1], refused))
    raise RackwrightError(f"nothing is left of run {newest[-1].id}: later runs have taken its hosts on", code="RW0805")


def _without_drained(possible: list[Candidate]) -> list[Candidate]:
    """Those with more left than hosts that were drained at the time, when there are such: nothing went wrong there."""
    wanting = [
        one for one in possible if any(one.record.states.get(host) != RunState.DRAINED for host in one.remaining)
    ]
    return wanting or possible


def _listed(possible: Sequence[Candidate]) -> Iterator[str]:
    yield "it is not clear which run is meant, so nothing was done; next, one of these:"
    for one in possible:
        yield f"  rackwright resume {one.record.id}"
        yield f"    {one.record.begin['what']}, begun {one.record.began} UTC; left: {_names(one.remaining)}"
        if one.overtaken:
            yield f"    later runs have worked on {_names(one.overtaken)}"


def _names(hosts: Sequence[str]) -> str:
    more = f" and {len(hosts) - SHOWN} more" if len(hosts) > SHOWN else ""
    return ", ".join(hosts[:SHOWN]) + more
