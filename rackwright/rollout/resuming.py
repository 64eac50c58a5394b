"""The rest of a run that was cut, or that skipped hosts: forward, or further back. Pure.

resumable_runs.py decides which run that is, among all of a site's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rackwright.exit_codes import ExitCode
from rackwright.masks import MASK
from rackwright.messages import RackwrightError
from rackwright.record.ending import FIX
from rackwright.record.record import (
    BACKWARD,
    BY_HAND,
    DRAIN,
    DRIVERS,
    FORWARD,
    REBOOT,
    TEARDOWN,
    UNDRAIN,
    Record,
    hosts_in,
    left_hosts,
)
from rackwright.record.states import WELL, RunState

AGAIN = "the same command again"
NEXT = "; next: "
RESUME = "rackwright resume"
_UNNAMED = re.compile(rf"{RESUME}(?=$|[,;]| to )|(?<=@)last\b")
Releases = dict[str, dict[str, str]]
RESUMABLE = (FORWARD, BY_HAND, TEARDOWN, DRAIN, UNDRAIN, REBOOT, DRIVERS)
"""Purposes of runs whose records say enough, beside the plain deploys'."""
RESTARTS = (REBOOT, DRIVERS)
"""Purposes of runs that restart hosts in waves."""


@dataclass(frozen=True)
class Rest:
    """A resume: `kind` is the purpose, BACKWARD on the way back of a rollout, empty for a plain deploy."""

    kind: str
    hosts: tuple[str, ...]
    releases: Releases = field(default_factory=dict)
    """Rolling back: release by endpoint by host. Forward: what hosts ran before that have the new release already."""
    first: tuple[str, ...] = ()
    """Hosts that were in the middle of their switch: they must be seen to serve before all others."""
    last: tuple[str, ...] = ()
    """Hosts with a fault of their own: they must not block the others."""


def rest_of(record: Record) -> Rest:
    """Return the rest of a run. Raises RackwrightError when nothing remains, or when resuming it would be wrong."""
    _refuse_unfit(record)
    purpose = record.begin["purpose"]
    if purpose == BY_HAND:
        remaining = _by_hand(record)
    elif purpose in (TEARDOWN, DRAIN, UNDRAIN):
        remaining = Rest(purpose, tuple(left_hosts(record)))
    elif purpose in RESTARTS:
        remaining = _restarts(record)
    elif purpose == FORWARD:
        remaining = _back(record) if rolls_back(record) else _forward(record)
    else:
        remaining = _plain(record)
    if not remaining.hosts and (unrecovered := unrecovered_hosts(record)):
        raise RackwrightError(f"run {record.id}: {advice(record, unrecovered)}", code="RW0812")
    if not remaining.hosts:
        raise RackwrightError(f"nothing is left of run {record.id}: {record.counts()}", code="RW0805")
    return remaining


def unrecovered_hosts(record: Record) -> list[str]:
    """Return hosts that need manual action: rolling back failed, or the run ended without a record of their success."""
    over = record.end is not None and record.end["status"] == ExitCode.MANUAL_ACTION
    back = record.phases.get(BACKWARD, {})
    states = [host for host, state in record.states.items() if _is_unrecovered(state, over, host in back)]
    return states + [host for host in record.begin.get("hurt", ()) if host not in record.states]


def _is_unrecovered(state: RunState, over: bool, was_to_leave: bool) -> bool:
    if state in (RunState.NOTHING_SERVES, RunState.UNKNOWN):
        return True
    not_left = was_to_leave and state not in (RunState.TAKEN_BACK, RunState.UNCHANGED)
    return over and (not_left or state in (RunState.SWITCHING, RunState.AFTERWARDS))


def advice(record: Record, unrecovered: Sequence[str]) -> str:
    """Return the next step for hosts that need manual action."""
    inventory, limits = record.begin["inventory"], "".join(f" --limit {host}" for host in unrecovered)
    why = (
        "not back from its restart, or not answering"
        if record.begin["purpose"] in RESTARTS
        else "rolling back failed there"
    )
    return (
        f"manual action needed on {', '.join(unrecovered)}: {why}, and they may serve nothing; next: "
        f"rackwright status {inventory}{limits}, then rackwright logs {inventory}{limits}"
    )


def is_resumable(record: Record) -> bool:
    """Return True for a run of a kind that can be resumed, as far as its record goes."""
    return record.begin.get("purpose") in RESUMABLE or bool(record.begin.get("plain"))


def refuse_living(record: Record) -> None:
    """Raise RackwrightError when the run is still under way."""
    if record.lives:
        pids = ", ".join(str(process["pid"]) for process in record.processes)
        raise RackwrightError(
            f"run {record.id} is still under way (process {pids}); next: wait, or stop it first", code="RW0813"
        )


def _refuse_unfit(record: Record) -> None:
    if "purpose" not in record.begin:
        raise RackwrightError(
            f"the record of run {record.id} does not say what was asked for; next: {AGAIN}", code="RW0814"
        )
    if not is_resumable(record):
        what = record.begin.get("what", record.begin["purpose"])
        raise RackwrightError(f"run {record.id} ({what}) cannot be resumed; next: {AGAIN}", code="RW0814")
    refuse_living(record)
    if record.resumed_by:
        raise RackwrightError(
            f"run {record.id} was resumed as {record.resumed_by} already; next: rackwright runs {record.resumed_by}",
            code="RW0815",
        )
    if record.is_refused:
        later = ", when the other run has ended" if RunState.BUSY in record.states.values() else ""
        text = f"run {record.id} ({record.begin['what']}) was {_no(record)} before it did anything"
        raise RackwrightError(f"{text}: {record.counts()}; next: {AGAIN}{later}", code="RW0816")
    masked = [key for key, value in record.begin.get("data", {}).items() if MASK in json.dumps(value)]
    if masked:
        raise RackwrightError(
            f"run {record.id} had --data {', '.join(masked)} with a secret, which no record keeps; next: "
            f"{AGAIN}, with {_left_alone(record)}",
            code="RW0817",
        )


def _no(record: Record) -> str:
    refused = record.end is not None and record.end["status"] in (ExitCode.ERROR, ExitCode.MIXED)
    return "refused" if refused else "stopped"


def _left_alone(record: Record) -> str:
    """Return the option by which the command takes only the remaining hosts. pyinfra's own has no --only."""
    if not record.begin.get("plain"):
        return f"--only left@{record.id}"
    return " ".join(f"--limit {host}" for host in left_hosts(record))


def rolls_back(record: Record) -> bool:
    """Return True if the run found the release at fault, and so took its hosts back."""
    return BACKWARD in record.phases or "back" in record.begin or record.judgement.is_the_releases


def _plain(record: Record) -> Rest:
    if record.judgement.is_the_releases:
        inventory = record.begin["inventory"]
        switched = hosts_in(record, RunState.SWITCHED)
        back = f", or rackwright rollback {inventory} --only switched@{record.id}" if switched else ""
        raise RackwrightError(
            f"run {record.id} found its release at fault, and a resume would push it on; next: {FIX}, then "
            f"pyinfra {inventory} {record.begin['deploy']}{back}",
            code="RW0818",
        )
    return Rest("", tuple(left_hosts(record)), first=_cut(record))


def _forward(record: Record) -> Rest:
    hosts = left_hosts(record)
    last = {*record.judgement.blamed, *_in(record, RunState.QUARANTINED)}
    return Rest(
        FORWARD,
        tuple(hosts),
        {**_earlier(record), **_before(record, RunState.SWITCHED)},
        first=tuple(host for host in _cut(record) if host not in last),
        last=tuple(host for host in hosts if host in last),
    )


def _restarts(record: Record) -> Rest:
    """Return the hosts: those with an ordered restart before the others, those with a fault of their own last."""
    hosts, blamed = left_hosts(record), record.judgement.blamed
    last = {*blamed, *_in(record, RunState.QUARANTINED)}
    first = tuple(host for host in _cut(record) if host not in last)
    return Rest(record.begin["purpose"], tuple(hosts), first=first, last=tuple(host for host in hosts if host in last))


def _back(record: Record) -> Rest:
    if record.end is not None and record.end["status"] == ExitCode.ROLLED_BACK:
        raise RackwrightError(
            f"run {record.id} found its release at fault and rolled it back, so nothing is left to resume; next: "
            f"fix the settings, then rackwright rollout {record.begin['inventory']}",
            code="RW0819",
        )
    wanted = record.begin.get("back") or {**_earlier(record), **_before(record, *_WITH_IT)}
    states = record.phases.get(BACKWARD, {})
    remaining: Releases = {host: dict(releases) for host, releases in wanted.items() if states.get(host) not in WELL}
    return Rest(BACKWARD, tuple(remaining), remaining)


_WITH_IT = (
    RunState.SWITCHED,
    RunState.AFTERWARDS,
    RunState.SWITCHING,
    RunState.NOTHING_SERVES,
    RunState.UNKNOWN,
)
"""States in which a host may have the new release still, wholly or in part."""


def _by_hand(record: Record) -> Rest:
    """Give hosts in the middle of it the release they were going to: `last`, asked again, is one further back."""
    hosts = left_hosts(record)
    wanted = record.begin.get("back", {})
    others = {"*": record.begin.get("to", "last")}
    found = {host: dict(record.targets.get(host) or wanted.get(host) or others) for host in hosts}
    return Rest(BY_HAND, tuple(hosts), found)


def _before(record: Record, *states: RunState) -> Releases:
    forward: Mapping[str, Any] = record.phases.get(FORWARD, {})
    return {
        host: dict(record.before[host])
        for host, state in forward.items()
        if state in states and record.before.get(host)
    }


def _earlier(record: Record) -> Releases:
    return {host: dict(releases) for host, releases in record.begin.get("earlier", {}).items()}


def _cut(record: Record) -> tuple[str, ...]:
    """Return hosts in the middle of their switch; those that an earlier run left so, until this one has begun them."""
    earlier = [host for host in record.begin.get("first", ()) if host not in record.states]
    return (*_in(record, RunState.SWITCHING), *earlier)


def _in(record: Record, state: RunState) -> tuple[str, ...]:
    return tuple(host for host, found in record.states.items() if found == state)


# -- the step that a run's last sentence names: never a command that refuses


def checked(record: Record, text: str) -> str:
    """Return the sentence with the run's name in its commands; where a resume would refuse, with its next step.

    record: of a run that has ended so, or was cut.
    """
    sentence, found, step = text.partition(NEXT)
    if not found or RESUME not in step:
        return text
    try:
        rest_of(record)
    except RackwrightError as error:
        step_of_error = error.text.partition("next: ")[2]
        return f"{sentence}{NEXT}{step_of_error}" if step_of_error else f"{sentence}; nothing is left to do"
    return f"{sentence}{NEXT}{_UNNAMED.sub(lambda hit: _named(hit[0], record.id), step)}"


def _named(name: str, run: str) -> str:
    return run if name == "last" else f"{name} {run}"


def shown_outcome(record: Record, overtaken: bool = False) -> str:
    """Return how a run ended, in a line, with the remaining step. overtaken: later runs took over what it left."""
    text = record.outcome
    sentence, found, step = text.partition(NEXT)
    if not found or RESUME not in step:
        return text
    if record.resumed_by:
        return f"{sentence}; continued as {record.resumed_by}"
    return f"{sentence}; later runs took over its hosts" if overtaken else checked(record, text)
