"""Endpoints that take the GPUs or the port of others: one switch, with one commit for all of them. Pure.

A new name, a swap of ports, one endpoint's GPUs split among two: what serves is drained and stopped, what replaces it
is started and proven, and only then does the old one step down. It serves again when anything fails before that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rackwright.concerns.endpoint.switch.job import (
    can_start_script,
    commit_script,
    drain_script,
    halt_script,
    in_turn,
    keep_log_script,
    named,
    point_script,
    start_script,
    started_script,
)
from rackwright.concerns.endpoint.switch.transaction import (
    ALONE,
    MEASURING,
    Tried,
    drain_hook_script,
    faults_script,
    prove_script,
    proving_time,
    ready_script,
    start_time,
    trial_values,
)
from rackwright.hostside import durable_script, host_script, job_script, trial_of_several
from rackwright.paths import (
    ENDPOINT_LABEL,
    TARGET,
    UNITS,
    container_name,
    endpoint_dir,
    endpoint_job,
    held_file,
    job_unit,
    trial_file,
    unit_name,
)
from rackwright.plan.change import Job

if TYPE_CHECKING:
    from rackwright.settings.model import EndpointSettings


@dataclass(frozen=True)
class Coming:
    """An endpoint that is to serve."""

    name: str
    own: EndpointSettings
    new: Tried
    previous: Tried | None = None
    """What it serves itself until then."""
    port: int | None = None
    """Where it serves that."""


@dataclass(frozen=True)
class Leaving:
    """An endpoint that serves, and is to be replaced."""

    name: str
    own: EndpointSettings
    """By which it is drained and asked."""
    tried: Tried
    port: int


def replacement_job(coming: Sequence[Coming], leaving: Sequence[Leaving], keep: int) -> Job:
    """The switch of all of them as one job, named after the first that comes. keep: proven releases that stay."""
    first = coming[0]
    home, back = endpoint_dir(first.name), [*_returning(coming), *leaving]
    script = job_script(
        "transaction",
        release=first.new.release,
        home=home,
        gate=first.own.gate.level,
        deadline=first.own.gate.commit_deadline,
        previous=" and ".join(f"release {one.tried.release} of endpoint {one.name}" for one in back),
        known="no",
        mark="",
        prepare=_prepare(coming, leaving),
        forward=_forward(coming, leaving),
        prove=in_turn(named(one.name, prove_script(one.name, one.new)) for one in coming),
        commit=_commit(coming, leaving, keep),
        keep_log=in_turn(keep_log_script(one.name, one.new.release) for one in coming),
        back=_back(coming, back),
        prove_back=in_turn(named(one.name, prove_script(one.name, one.tried)) for one in back),
        halt=in_turn(halt_script(one.name, forget=True) for one in coming),
        faults=faults_script(home),
        ready=_ready((one.name, one.own, one.new.release) for one in coming),
        ready_back=_ready((one.name, one.own, one.tried.release) for one in back),
        trial=trial_file(home),
        trying=_trial(coming, leaving),
        after=in_turn(_retire(one) for one in leaving),
    )
    names = ", ".join(f"{one.name} to {one.new.release}" for one in coming)
    title = f"switch endpoint {', '.join(one.name for one in coming)}"
    seconds = MEASURING + sum(map(_seconds, coming)) + sum(map(_seconds, leaving))
    job = endpoint_job("switch", first.name)
    return Job(job, title, script, seconds, aim=f"switch {names}", alone=ALONE, trial=trial_file(home))


def _returning(coming: Iterable[Coming]) -> list[Leaving]:
    """What endpoints of the same name serve until then."""
    return [
        Leaving(one.name, one.own, one.previous, one.port or one.own.port) for one in coming if one.previous is not None
    ]


def _prepare(coming: Sequence[Coming], leaving: Sequence[Leaving]) -> str:
    stood = [*_returning(coming), *leaving]
    # A release that lies nowhere any more could not be started again.
    there = (_there(one) for one in stood)
    drains = (named(one.name, drain_script(one.name, one.port, one.own.drain_timeout, _hook(one))) for one in stood)
    marks = (f": >{_mark(one.name)}" for one in coming if one.own.ready_hook)
    return in_turn([*there, *_able(coming, stood), *marks, *drains, *_able(coming, stood, again=True)])


def _able(coming: Sequence[Coming], stood: Sequence[Leaving], again: bool = False) -> list[str]:
    """Fail before anything that serves is stopped, where something of all that is to start could not."""
    publishes = any(own.network == "bridge" for own in (*(one.own for one in coming), *(one.own for one in stood)))
    new = [(one.name, one.new.release) for one in coming]
    own = [(one.name, one.tried.release) for one in stood]
    return [named(one.name, can_start_script(one.name, [*new, *own], publishes, again)) for one in stood]


def _there(one: Leaving) -> str:
    unit = f"{endpoint_dir(one.name)}/releases/{one.tried.release}/{unit_name(one.name)}"
    return host_script("stood_on", endpoint=one.name, unit=unit)


def _hook(one: Leaving) -> str:
    return drain_hook_script(one.name, one.own, one.tried.release)


def _forward(coming: Sequence[Coming], leaving: Sequence[Leaving]) -> str:
    stops = _stop([*(one.name for one in leaving), *(one.name for one in coming)])
    points = (point_script(one.name, one.new.release, one.new.binding) for one in coming)
    starts = (start_script(one.name, one.new.release) for one in coming)
    waits = (_wait(one.name, one.own.load_timeout) for one in coming)
    return in_turn([stops, *points, *starts, *waits])


def _stop(names: Iterable[str]) -> str:
    units = " ".join(map(unit_name, names))
    # One that was never here has no unit yet.
    return f"""for unit in {units}; do
  systemctl stop "$unit" 2>/dev/null || ! systemctl is-active --quiet "$unit" || exit 1
done"""


def _wait(name: str, load_timeout: int) -> str:
    """The last lines of one that dies are those since its start."""
    return named(name, f"since=$(cat {endpoint_dir(name)}/switched)\n{started_script(name, load_timeout)}")


def _commit(coming: Sequence[Coming], leaving: Sequence[Leaving], keep: int) -> str:
    commits = (commit_script(one.name, one.new.release, one.new.binding, keep) for one in coming)
    wants = f"{UNITS}/{TARGET}.wants"
    by = "\n".join(one.name for one in coming)
    downs = (
        durable_script("step_down", unit=unit_name(one.name), home=endpoint_dir(one.name), by=by, wants=wants)
        for one in leaving
    )
    return in_turn([*commits, *downs])


def _back(coming: Sequence[Coming], back: Sequence[Leaving]) -> str:
    if not back:
        return ""
    halts = (halt_script(one.name, forget=True) for one in coming if one.previous is None)
    points = (point_script(one.name, one.tried.release, one.tried.binding) for one in back)
    starts = (start_script(one.name, one.tried.release) for one in back)
    pointed = """cut -d' ' -f1 /proc/uptime >"$JOB/pointed\""""
    waits = (_wait(one.name, one.own.load_timeout) for one in back)
    return in_turn([_stop(one.name for one in coming), *halts, *points, *starts, pointed, *waits])


def _retire(one: Leaving) -> str:
    helper = job_script("remove_helper", container=container_name(one.name), label=ENDPOINT_LABEL)
    return helper + host_script("retire", unit=unit_name(one.name), units=UNITS)


def _trial(coming: Sequence[Coming], leaving: Sequence[Leaving]) -> str:
    tried = [host_script("trial_endpoint", **trial_values(one.name, one.new, one.previous, "trial")) for one in coming]
    left = [host_script("trial_leaving", unit=unit_name(one.name), home=endpoint_dir(one.name)) for one in leaving]
    owner = job_unit(endpoint_job("switch", coming[0].name))
    return trial_of_several(owner, [held_file(one.name) for one in coming], [*tried, *left])


def _ready(served: Iterable[tuple[str, EndpointSettings, str]]) -> str:
    """Let clients in again. A hook that fails keeps no other endpoint's clients out; the next run tries it again."""
    hooks = [
        f"(\n{ready_script(name, own, release)}\n) && rm -f {_mark(name)} || failed=1\n"
        for name, own, release in served
        if own.ready_hook
    ]
    return "".join(["failed=0\n", *hooks, "exit $failed\n"])


def _mark(name: str) -> str:
    return f"{endpoint_dir(name)}/not-admitted"


def _seconds(one: Coming | Leaving) -> int:
    tried = one.new if isinstance(one, Coming) else one.tried
    own = one.own
    proof = own.gate.commit_deadline + proving_time(tried.questions)
    return 3 * own.hook_timeout + own.drain_timeout + 2 * (start_time(own) + proof)
