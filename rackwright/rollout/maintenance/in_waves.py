"""A host's maintenance from its control process: out of service, in again, and restarts in waves."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from rackwright.adapter.run.options import data_words
from rackwright.record.ending import end_of_drain, end_of_drivers, end_of_reboot, end_of_undrain
from rackwright.record.record import DRAIN, DRIVERS, REBOOT, UNDRAIN
from rackwright.rollout.launch import Run, phase

BACK_WITHIN = 1200
"""Seconds for a restart: a server with eight GPUs and terabytes of memory tests them for a quarter of an hour."""


@contextmanager
def _deploy(name: str) -> Iterator[Path]:
    with as_file(files("rackwright.operations.deploys") / f"{name}.py") as path:
        yield path


def take_out(run: Run, mark: Mapping[str, str]) -> tuple[int, str]:
    """Drain the run's hosts; returns the exit status and the message. mark: why, by whom, since when."""
    started = run.as_plain()
    started.note("phase", name=DRAIN)
    with _deploy(DRAIN) as deploy:
        status = started.pyinfra(deploy, started.hosts, {}, mark=dict(mark))
    limits = [option for host in started.hosts for option in ("--limit", host)]
    again = shlex.join(["rackwright", "undrain", str(started.inventory), *limits, *data_words({})])
    return end_of_drain(started.hosts, status, phase(started, DRAIN), again)


def take_in(run: Run) -> tuple[int, str]:
    """Take the run's drained hosts into service again; returns the exit status and what to say."""
    started = run.as_plain()
    started.note("phase", name=UNDRAIN)
    with _deploy(UNDRAIN) as deploy:
        status = started.pyinfra(deploy, started.hosts, {})
    return end_of_undrain(started.hosts, status, phase(started, UNDRAIN))


def restart_hosts(
    run: Run, data: Mapping[str, Any], seconds: int, boots: Mapping[str, str] | None = None, **order: Sequence[str]
) -> tuple[int, str]:
    """Restart the run's hosts in waves; returns the exit status and what to say.

    seconds: within which each must be back. boots: by host, the boot that an earlier run was to end.
    """
    run.note("phase", name=REBOOT)
    with _deploy(REBOOT) as deploy:
        status = run.pyinfra(deploy, run.hosts, data, back_within=seconds, boots=dict(boots or {}), **order)
    return end_of_reboot(run.hosts, status, phase(run, REBOOT))


def switch_drivers(
    run: Run, data: Mapping[str, Any], seconds: int, boots: Mapping[str, str] | None = None, **order: Sequence[str]
) -> tuple[int, str]:
    """Switch NVIDIA's driver on the run's hosts in waves; returns the exit status and what to say.

    seconds, boots: as for `restart_hosts`.
    """
    run.note("phase", name=DRIVERS)
    with _deploy(DRIVERS) as deploy:
        status = run.pyinfra(deploy, run.hosts, data, back_within=seconds, boots=dict(boots or {}), **order)
    return end_of_drivers(run.hosts, status, phase(run, DRIVERS))
