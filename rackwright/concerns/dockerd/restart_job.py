"""A restart of dockerd while endpoints serve: a switch of the host to the releases that it already serves. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rackwright.concerns.endpoint.switch.job import in_turn
from rackwright.concerns.endpoint.switch.transaction import ALONE, HostStep, Part, Switch, switch_job
from rackwright.hostside import job_script
from rackwright.paths import STATE, endpoint_dir, unit_name
from rackwright.plan.change import Job

JOB = "dockerd"
"""Name of the only job that may restart dockerd while endpoints serve."""
HOME = f"{STATE}/dockerd"
"""Folder with the result of the last such restart, and the logs of failed ones."""
SECONDS = 540
"""Time limit for both restarts of dockerd, forward and back."""
_AIM = "restart dockerd under its endpoints"
_TITLE = "restart dockerd"


@dataclass(frozen=True)
class Scripts:
    """The job's scripts for dockerd itself."""

    valid: str
    """Fails without having changed anything."""
    forward: str
    back: str
    trial: str
    """Restores the configuration when the job is interrupted."""
    again: str = ""
    """Checks after the drains that dockerd would start again."""


def restart_job(label: str, scripts: Scripts, stood: Sequence[Part], others: Sequence[str]) -> Job:
    """Drain, stop, restart dockerd, start and prove; on any failure, repeat with the previous configuration.

    label: names the new configuration. stood: endpoints that serve, each from its release to the same one. others:
    endpoints that run without serving, started again and not proven.
    """
    logs = _keep_logs(label, [part.name for part in stood])
    ways = (scripts.valid, scripts.forward, scripts.back, scripts.trial)
    step = HostStep(*ways, SECONDS, logs, tuple(others), scripts.again)
    before = "dockerd's previous configuration"
    return switch_job(Switch(JOB, _TITLE, _AIM, HOME, label, before, tuple(stood), step=step))


def joining_job() -> Job:
    """Return the job that joins a restart that is under way; if it has ended by then, nothing is left to do."""
    return Job(JOB, _TITLE, "exit 0\n", SECONDS, aim=_AIM, alone=ALONE)


def _keep_logs(label: str, names: Sequence[str]) -> str:
    """Return a script that keeps the endpoints' logs since their start, and dockerd's, the most useful, last."""
    logs = [(unit_name(name), endpoint_dir(name), "switch") for name in names]
    return in_turn(
        job_script("keep_log", unit=unit, home=home, label=f"dockerd-{label}", part=part)
        for unit, home, part in [*logs, ("docker.service", HOME, "all")]
    )
