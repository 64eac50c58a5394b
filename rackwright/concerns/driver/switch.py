"""The changes of a driver switch: install while the endpoints rest, restart, prove. Pure.

A host that is cut off from here on comes back with the new driver and starts its endpoints; the next run proves it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rackwright.concerns.diagnosis.changes import diagnosis_job, level_for
from rackwright.concerns.drained import DRAINED
from rackwright.concerns.driver.concern import DRIVER, packages_functions
from rackwright.concerns.driver.rows import refusals
from rackwright.concerns.driver.seen import SeenDriver
from rackwright.concerns.driver.step import DriverReturn
from rackwright.concerns.driver.wanted import DriverState, WantedDriver
from rackwright.concerns.endpoint.switch.rest_and_return import (
    RestartWork,
    asked_on_return,
    follow_changes,
    restart_changes,
    stop_all_script,
    stop_and_restart_job,
    wait_all_script,
)
from rackwright.concerns.endpoint.switch.steps import HostReturn
from rackwright.concerns.gateway.answer import gateway_answers
from rackwright.concerns.gpus import GPUS
from rackwright.hostside import host_script, job_script
from rackwright.plan.change import Change, Job, Owned, Refuse, Shell, Step
from rackwright.plan.concern import HostReading
from rackwright.settings.host_settings import HostSettings

INSTALLING = 3600
"""Seconds for packages whose modules are built on the host, once forward and once back."""
CHOICE = Owned("file", "/etc/default/grub.d/rackwright-driver.cfg")
"""Keeps GRUB's default at the kernel of before, until the one that comes with a driver is proven."""
JOINING = 180
"""Seconds within which the hosts of an IMEX domain have found each other."""
Checks = Callable[[HostSettings, HostReading], tuple[Job, ...]]
"""Makes the jobs that must end well on a host with its new driver, before its endpoints are asked."""


def no_checks(_: HostSettings, __: HostReading) -> tuple[Job, ...]:
    """Return no job: the driver's version, its GPUs and the endpoints' answers are the proof."""
    return ()


def gpu_checks(settings: HostSettings, reading: HostReading) -> tuple[Job, ...]:
    """Return the diagnosis by DCGM, where the host has it: its endpoints, started at boot, are stopped for it.

    The proof starts them again; on a host that follows another one they wait for their head again.
    """
    level = settings.diagnosis.before_serving
    if not level or not reading[GPUS].diagnosis.installed:
        return ()
    again = wait_all_script(reading) if settings.follows else ""
    return (diagnosis_job(level_for(reading[GPUS].gpus, level)[0], stop_all_script(reading), again),)


def driver_changes(
    settings: HostSettings, reading: HostReading, seconds: int, before: str | None, checks: Checks = no_checks
) -> list[Change]:
    """Switch a host's driver; or wait for its return alone, where it was restarted since an earlier run began.

    A host that has the driver already takes part for those that serve with it alone: it restarts with them.
    seconds: within which it must be back. before: the boot in which that earlier run found it, if any.
    """
    wanted, driver = DRIVER.wanted(settings, reading), reading[DRIVER]
    returned = _returned(settings, reading, checks(settings, reading))
    if before is not None and before != reading[DRAINED].boot:
        back = returned(HostReturn(tuple(asked_on_return(settings, reading)), before, seconds))
        steps: tuple[Step, ...] = (back, *gateway_answers(settings))
        last = follow_changes(settings, reading) if settings.follows else []
        prove = Change(f"prove NVIDIA's driver {wanted.version}", "the host was restarted for it", steps)
        return _with_default(wanted, driver, [prove, *last])
    if rows := refusals(wanted, driver):
        return [Change(row.text, "", (Refuse(f"{row.text}; next: {row.fix}", code=row.code),)) for row in rows]
    match wanted.state(driver):
        case DriverState.SETTLED if settings.group is not None:
            what = "restart with the hosts of its endpoint that get another driver"
            return restart_changes(
                settings, reading, seconds, RestartWork(what, "they serve together", returned=returned)
            )
        case DriverState.UNMANAGED | DriverState.SETTLED:
            return []
        case DriverState.UNSTAGED:
            return [_not_staged(wanted)]
    work = _work(settings, wanted, driver, returned)
    return _with_default(wanted, driver, restart_changes(settings, reading, seconds, work))


def _with_default(wanted: WantedDriver, driver: SeenDriver, changes: list[Change]) -> list[Change]:
    """Add to the last change that GRUB boots the new kernel from then on, where the driver has come with one."""
    staged = driver.staged
    if staged is None or staged.version != wanted.version or not staged.kernel:
        return changes
    script = host_script("driver_kernel") + host_script("driver_default", kernel=staged.kernel)
    title = f"the kernel {staged.kernel} runs, and could not be made GRUB's default"
    step = Shell(script, title=title, code="RW4114")
    last = changes[-1]
    return [*changes[:-1], replace(last, steps=(*last.steps, step), disowns=(*last.disowns, CHOICE))]


def _not_staged(wanted: WantedDriver) -> Change:
    text = f"NVIDIA's driver {wanted.version} is not staged; next: pyinfra INVENTORY deploy.py"
    return Change(text, "", (Refuse(text, code="RW4116"),))


def _work(
    settings: HostSettings, wanted: WantedDriver, driver: SeenDriver, returned: Callable[[HostReturn], Step]
) -> RestartWork:
    """Return what the host does at rest; one whose packages are there already is only restarted."""
    now, what = wanted.now(driver) or "none", f"switch NVIDIA's driver to {wanted.version}"
    if wanted.state(driver) is DriverState.INSTALLED:
        return RestartWork(f"restart into NVIDIA's driver {wanted.version}", f"{now} is loaded", returned=returned)
    functions, version = packages_functions(settings), wanted.version
    first = functions + host_script("driver_can_switch", version=version)
    install = functions + job_script("driver_install", version=version, fabric=wanted.fabric)
    return RestartWork(what, f"it is {now}", first, install, INSTALLING, returned, _adds(wanted, driver))


def _adds(wanted: WantedDriver, driver: SeenDriver) -> tuple[Owned, ...]:
    """Return what the switch adds; holds of an operator, or of an earlier switch, are not among it."""
    holds = driver.staged.holds if driver.staged and driver.staged.version == wanted.version else ()
    choice = (CHOICE,) if driver.staged and driver.staged.kernel else ()
    return (*choice, *(Owned("hold", name) for name in holds if name not in driver.held))


def _returned(settings: HostSettings, reading: HostReading, checks: tuple[Job, ...]) -> Callable[[HostReturn], Step]:
    wanted, driver = DRIVER.wanted(settings, reading), reading[DRIVER]
    staged = driver.staged
    old = staged.old if staged and staged.version == wanted.version else ""
    undo = back_job(settings, reading, wanted.version, old) if old else None
    gpus, together, domain = len(reading[GPUS].gpus), settings.group is not None, _domain(settings)
    return lambda back: DriverReturn(
        back.proofs, back.boot, back.seconds, wanted.version, old, gpus, undo, checks, together, domain
    )


def _domain(settings: HostSettings) -> Shell | None:
    """Return the start of IMEX on a host of several whose GPUs reach each other; the head waits for all of them."""
    group = settings.group
    if group is None or settings.all_endpoints[group.endpoint].group_transport != "nvlink":
        return None
    seconds = 0 if settings.follows else JOINING
    title = "the IMEX domain of its endpoint is not up"
    return Shell(host_script("imex_domain", seconds=seconds), timeout=JOINING + 120, title=title, code="RW4104")


def back_job(settings: HostSettings, reading: HostReading, version: str, old: str) -> Job:
    """Return the job that puts the driver of before back, while all endpoints rest, and restarts the host."""
    script = packages_functions(settings) + job_script("driver_back", version=version)
    return stop_and_restart_job(f"go back to NVIDIA's driver {old}", reading, script, INSTALLING)
