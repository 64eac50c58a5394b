"""The change that diagnoses a host's GPUs, when it is due, and where it is refused. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rackwright.concerns.diagnosis.seen import KEPT
from rackwright.concerns.drained import DRAINED
from rackwright.concerns.endpoint.concern import ENDPOINT
from rackwright.concerns.gpus import GPUS, Gpu
from rackwright.hostside import job_script
from rackwright.plan.change import Change, Job, Refuse
from rackwright.plan.concern import HostReading
from rackwright.settings.host_settings import HostSettings

JOB = "diagnose"
LEVEL_ONE_ONLY = ("GeForce", "RTX", "Quadro", "TITAN", "GB10")
"""Words in the names of GPUs that are not for data centres: DCGM tests them at level 1 alone.

https://docs.nvidia.com/datacenter/dcgm/latest/installation.html, "Feature Availability by GPU Class"; on a GB10 level
2 of DCGM 4.2.3 skips all but the software's test.
"""
USUAL = {1: "some seconds", 2: "about 2 minutes", 3: "about 15 minutes"}
"""Time that a level takes, as NVIDIA's page has it."""
LONGEST = {1: 300, 2: 1200, 3: 5400}
"""Seconds after which it is ended."""
BUSY = ("active", "activating", "reloading", "deactivating")
"""States of an endpoint's unit in which its GPUs may be in use."""
PACKAGE = "datacenter-gpu-manager-4-cuda13"


def level_for(gpus: Iterable[Gpu], level: int) -> tuple[int, str]:
    """Return the level at which these GPUs are tested, and why it is not the wanted one, if it is not."""
    limited = sorted({gpu.name for gpu in gpus if any(part in gpu.name.split() for part in LEVEL_ONE_ONLY)})
    if level > 1 and limited:
        return 1, f"level 1 only, not {level}: {', '.join(limited)} is not a data centre's GPU for DCGM"
    return level, ""


def due_level(settings: HostSettings, reading: HostReading) -> int:
    """Return the level of the diagnosis that a host is due before it serves; 0 for none.

    Once a boot; what failed in an earlier one is repeated at its own level.
    """
    diagnosis, wanted = reading[GPUS].diagnosis, settings.diagnosis.before_serving
    if not wanted or not diagnosis.installed or not reading[GPUS].gpus or _busy(reading):
        return 0
    last = diagnosis.last
    again = last.level if last and last.verdict == "fail" else 0
    level, _ = level_for(reading[GPUS].gpus, max(wanted, again))
    done = last is not None and last.boot == reading[DRAINED].boot and last.level >= level
    return 0 if done else level


def due_changes(settings: HostSettings, reading: HostReading) -> list[Change]:
    """Return the diagnosis that is due before the host serves."""
    level = due_level(settings, reading)
    _, limited = level_for(reading[GPUS].gpus, settings.diagnosis.before_serving)
    why = "nothing serves here, and its GPUs were not diagnosed since the boot"
    return [_diagnosis(level, "; ".join(filter(None, [why, limited])))] if level else []


def asked_changes(reading: HostReading, hosts: Sequence[str], level: int) -> list[Change]:
    """Return the diagnosis that an operator asks for, or why it is refused.

    hosts: the host, or all those that serve its endpoint together.
    """
    level, why = level_for(reading[GPUS].gpus, level)
    refusal = next(_refusals(reading, hosts, level), None)
    if refusal is not None:
        return [Change(f"diagnose the GPUs at level {level}", "asked for", (refusal,))]
    return [_diagnosis(level, why or "asked for")]


def _diagnosis(level: int, why: str) -> Change:
    what = f"diagnose the GPUs at level {level} by dcgmi, {USUAL[level]}"
    return Change(what, why, (diagnosis_job(level),))


def diagnosis_job(level: int, first: str = "", last: str = "") -> Job:
    """Return the job that lets DCGM test the GPUs.

    first: a script that makes them free. last: one that runs afterwards, whatever became of the test.
    """
    script = first + job_script("diagnose", level=level, seconds=LONGEST[level], kept=KEPT, usual=USUAL[level])
    if last:
        script = f"(\n{script}\n)\nended=$?\n{last}exit $ended\n"
    title = f"diagnose the GPUs (dcgmi diag -r {level})"
    return Job(JOB, title, script, LONGEST[level] + 120, aim=f"{JOB} {level}", code="RW2617")


def _refusals(reading: HostReading, hosts: Sequence[str], level: int) -> Iterator[Refuse]:
    if names := _busy(reading):
        limits = " --limit ".join(hosts)
        text = (
            f"{', '.join(names)} serves here, and a diagnosis takes its GPUs; nothing was done; next: rackwright drain "
            f"INVENTORY --limit {limits} --reason diagnosis, then the same command, then rackwright undrain INVENTORY "
            f"--limit {limits}"
        )
        yield Refuse(text, code="RW2627")
    if not reading[GPUS].diagnosis.installed:
        text = (
            f"dcgmi is not installed; next, on the host, from NVIDIA's repository: apt-get install -y {PACKAGE}; "
            "systemctl enable --now nvidia-dcgm"
        )
        yield Refuse(text, code="RW2637")
    computing = {one.pid: one for gpu in reading[GPUS].gpus for one in gpu.processes if one.computes}
    if level > 1 and computing:
        pids = ",".join(map(str, computing))
        text = (
            f"{', '.join(f'pid {one.pid} {one.name}' for one in computing.values())} computes on the GPUs, and level "
            f"{level} needs them to itself; next, on the host: ps -fp {pids}"
        )
        yield Refuse(text, code="RW2647")


def _busy(reading: HostReading) -> list[str]:
    endpoints: dict[str, Any] = dict(reading[ENDPOINT].endpoints)
    return sorted(name for name, now in endpoints.items() if now.active in BUSY)
