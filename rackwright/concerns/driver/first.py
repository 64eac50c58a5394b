"""The first driver of a host, which a deploy installs and loads where the settings let it. Pure."""

from __future__ import annotations

from rackwright.concerns.driver.rows import refusals
from rackwright.concerns.driver.seen import SeenDriver
from rackwright.concerns.driver.wanted import WantedDriver
from rackwright.hostside import job_script
from rackwright.plan.change import Change, Job

LONGEST = 2400
"""Seconds for packages whose modules are built on the host, and to take them away again."""
ALONE = "the installation continues on the host; the next run reattaches"


def installs_first(wanted: WantedDriver, reading: SeenDriver) -> bool:
    """Return True if a deploy installs this host's driver: it has none, nothing is in the way, no restart is due."""
    if not (wanted.version and wanted.settings.driver.first_by_deploy and wanted.is_first(reading)):
        return False
    return not (reading.other_kernel(wanted.version) or refusals(wanted, reading))


def first_change(wanted: WantedDriver, functions: str) -> Change:
    """Return the change that installs the staged driver and loads it. functions: of jobs with the driver's packages."""
    what = f"install NVIDIA's driver {wanted.version} and load it"
    script = functions + job_script("driver_first", version=wanted.version, fabric=wanted.fabric)
    job = Job("driver-first", what, script, LONGEST, alone=ALONE, code="RW4005")
    return Change(what, "the host has none, and nothing serves there", (job,))
