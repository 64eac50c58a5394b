"""Danger zone: have a host restart dockerd with its endpoints and prove them. The host works on its own.

Every outcome is a typed error, the same as a release's.
"""

from __future__ import annotations

from rackwright.adapter.host import Host
from rackwright.concerns.dockerd.restart_job import HOME
from rackwright.concerns.endpoint.switch.events import SwitchProgress
from rackwright.concerns.endpoint.switch.follow import (
    LACKING,
    WAITS,
    NothingServesError,
    RolledBackError,
    UnknownEndError,
    clock_of,
    closed,
    failure_of,
    fetch_log,
    tell,
    with_more,
)
from rackwright.concerns.endpoint.switch.steps import DaemonRestart
from rackwright.paths import failed_dir, unit_name
from rackwright.remote.errors import NotStartedError, StepFailedError, TakenBackError
from rackwright.remote.job_scripts import Ended
from rackwright.remote.jobs import follow_job


class ConfigurationBackError(RolledBackError, TakenBackError):
    """The new configuration failed; dockerd and its endpoints run with the previous one."""

    code = "RW0720"


def restart_and_prove(host: Host, step: DaemonRestart) -> None:
    """Have the host drain, restart dockerd, start its endpoints and prove them. Raises an error for each other outcome.

    A lost connection does not tell the result: the job keeps running on the host, and the next run reattaches.
    """
    progress = SwitchProgress("dockerd", failed_dir(HOME), "configuration")
    ended = follow_job(host, step.job, lambda heard: tell(host, progress, heard))
    error = ending(step, progress, ended)
    if error is not None:
        log = fetch_log(host, progress, step.configuration)
        raise with_more(error, f"dockerd's log of the failed try: {log}" if log else "")


def ending(step: DaemonRestart, progress: SwitchProgress, ended: Ended) -> StepFailedError | None:
    """Return the error of a restart that ended so, with its cause chained; None when it succeeded."""
    names = ", ".join(step.endpoints)
    failure = failure_of(progress)
    error: StepFailedError | None
    match ended.status:
        case 0:
            error = None
        case 3:
            text = f"dockerd has its previous configuration, serving again: {names}{clock_of(progress)}"
            error = ConfigurationBackError(f"{failure.text}\n{text}")
        case 4:
            error = NothingServesError(f"{failure.text}\nand rolling back failed too: {progress.lost}\n{_hands(step)}")
        case 5:
            error = NotStartedError(
                f"dockerd was not restarted, still serving: {names}: {failure.text}",
                failure.reasons,
                code=failure.code if failure.code in (LACKING, WAITS) else "RW0722",
            )
        case _:
            text = f"{step.job.title}: {ended.text}; the host rolls back, and it is not known yet whether that serves"
            error = UnknownEndError(f"{text}\n{_hands(step)}")
    return closed(error, progress, failure, f"dockerd runs with its new configuration, proven: {names}")


def _hands(step: DaemonRestart) -> str:
    units = " ".join(f"-u {unit_name(name)}" for name in step.endpoints)
    return f"manual action needed on this host; next: journalctl -u docker.service {units} --lines 100"
