"""A restart of dockerd under endpoints that serve, as one job of the host's own, by the rules of a switch. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from rackwright.concerns.endpoint.switch.job import (
    can_start_script,
    drain_script,
    in_turn,
    named,
    restart_script,
    wait_script,
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
)
from rackwright.hostside import host_script, job_script
from rackwright.paths import STATE, endpoint_dir, release_dir, trial_file, unit_name
from rackwright.plan.change import Job
from rackwright.settings.model import EndpointSettings

JOB = "dockerd"
"""Name of the one job that may restart dockerd under endpoints that serve."""
HOME = f"{STATE}/dockerd"
"""How the last such restart ended, and the logs of those that failed."""
SECONDS = 300
"""For both restarts of dockerd, going forward and back."""
_AIM = "restart dockerd under its endpoints"
_TITLE = "restart dockerd"


@dataclass(frozen=True)
class ServingEndpoint:
    """An endpoint that serves, and must serve the same release afterwards."""

    name: str
    own: EndpointSettings
    port: int
    """Where it serves now."""
    tried: Tried


@dataclass(frozen=True)
class Scripts:
    """What the job does to dockerd itself."""

    valid: str
    """Fails without having changed anything."""
    forward: str
    back: str
    trial: str
    """Takes the configuration back when the job is cut."""


def restart_job(label: str, scripts: Scripts, stood: Sequence[ServingEndpoint], others: Sequence[str]) -> Job:
    """Drain, stop, restart dockerd, start and prove; when anything fails, the same with the previous configuration.

    label: names the new configuration. others: endpoints that run without serving, started again and not asked.
    """
    prove = in_turn(named(one.name, prove_script(one.name, one.tried)) for one in stood)
    ready = _ready(stood)
    script = job_script(
        "transaction",
        release=label,
        home=HOME,
        gate="basic",
        deadline=0,
        previous="dockerd's previous configuration",
        known="no",
        mark="",
        prepare=_prepare(scripts.valid, stood),
        forward=_around(scripts.forward, stood, others),
        prove=prove,
        commit="",
        keep_log=_keep_logs(label, stood),
        back=_around(scripts.back, stood, others),
        prove_back=prove,
        halt="",
        faults=faults_script(HOME, asks=False),
        ready=ready,
        ready_back=ready,
        trial=trial_file(HOME),
        trying=scripts.trial,
        after="",
    )
    seconds = SECONDS + MEASURING + sum(map(_seconds, stood))
    return Job(JOB, _TITLE, script, seconds, aim=_AIM, alone=ALONE, trial=trial_file(HOME))


def joining_job() -> Job:
    """Joins a restart that is under way; one that has ended meanwhile needs nothing more."""
    return Job(JOB, _TITLE, "exit 0\n", SECONDS, aim=_AIM, alone=ALONE)


def _seconds(one: ServingEndpoint) -> int:
    hooks = 3 * one.own.hook_timeout
    return hooks + one.own.drain_timeout + 2 * (start_time(one.own) + proving_time(one.tried.questions))


def _prepare(valid: str, stood: Sequence[ServingEndpoint]) -> str:
    there = (host_script("stood_on", endpoint=one.name, unit=_unit_file(one)) for one in stood)
    marks = (f": >{_mark(one)}" for one in stood if one.own.ready_hook)
    drains = (named(one.name, _drain(one)) for one in stood)
    # Chains are what a restart of dockerd makes; all else must be there before anything is stopped.
    able = (named(one.name, can_start_script(one.name, [(one.name, one.tried.release)], False)) for one in stood)
    return in_turn([f"mkdir -p {HOME}", valid, *there, *able, *marks, *drains])


def _drain(one: ServingEndpoint) -> str:
    hook = drain_hook_script(one.name, one.own, one.tried.release)
    return drain_script(one.name, one.port, one.own.drain_timeout, hook)


def _around(restart: str, stood: Sequence[ServingEndpoint], others: Sequence[str]) -> str:
    """Stop what runs, restart dockerd, start it again and wait; loads go on side by side."""
    units = " ".join(map(unit_name, [*(one.name for one in stood), *others]))
    starts = (_start(one) for one in stood)
    again = (f"systemctl start --no-block {unit_name(name)}" for name in others)
    waits = (named(one.name, _wait(one)) for one in stood)
    pointed = """cut -d' ' -f1 /proc/uptime >"$JOB/pointed\""""
    return in_turn([f"systemctl stop {units}", restart, pointed, *starts, *again, *waits])


def _wait(one: ServingEndpoint) -> str:
    """The last lines of one that dies are those since its start."""
    since = f"since=$(cat {endpoint_dir(one.name)}/switched)\n"
    return since + wait_script(one.name, one.own.load_timeout)


def _start(one: ServingEndpoint) -> str:
    return restart_script(one.name, one.tried.release, one.tried.binding)


def _keep_logs(label: str, stood: Sequence[ServingEndpoint]) -> str:
    """The endpoints' logs since their start, and dockerd's, which says most, last."""
    own = [(unit_name(one.name), endpoint_dir(one.name), "switch") for one in stood]
    return in_turn(
        job_script("keep_log", unit=unit, home=home, label=f"dockerd-{label}", part=part)
        for unit, home, part in [*own, ("docker.service", HOME, "all")]
    )


def _ready(stood: Sequence[ServingEndpoint]) -> str:
    """Let clients in again. A hook that fails keeps no other endpoint's clients out; the next run tries it again."""
    hooks = [
        f"(\n{ready_script(one.name, one.own, one.tried.release)}\n) && rm -f {_mark(one)} || failed=1\n"
        for one in stood
        if one.own.ready_hook
    ]
    return "".join(["failed=0\n", *hooks, "exit $failed\n"])


def _mark(one: ServingEndpoint) -> str:
    return shlex.quote(f"{endpoint_dir(one.name)}/not-admitted")


def _unit_file(one: ServingEndpoint) -> str:
    return f"{release_dir(one.name, one.tried.release)}/{unit_name(one.name)}"
