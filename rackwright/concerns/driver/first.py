"""The first driver of a host, which a deploy installs and loads where the settings let it. Pure."""

from __future__ import annotations

from rackwright.concerns.driver.rows import refusals
from rackwright.concerns.driver.seen import SeenDriver
from rackwright.concerns.driver.wanted import WantedDriver
from rackwright.hostside import job_script
from rackwright.plan.change import Change, Job, Owned

LONGEST = 2400
"""Seconds for packages whose modules are built on the host, and to take them away again."""
ALONE = "the installation continues on the host; the next run reattaches"


def installs_first(wanted: WantedDriver, reading: SeenDriver) -> bool:
    """Return True if a deploy installs this host's driver: it has none, and nothing is in the way."""
    if not (wanted.version and wanted.settings.driver.first_by_deploy and wanted.is_first(reading)):
        return False
    return not refusals(wanted, reading)


def first_change(wanted: WantedDriver, functions: str) -> Change:
    """Return the change that installs the staged driver and loads it. functions: of jobs with the driver's packages."""
    what = f"install NVIDIA's driver {wanted.version} and load it"
    fabric = "yes" if wanted.settings.hardware.fabric_manager else ""
    script = functions + job_script("driver_first", version=wanted.version, fabric=fabric)
    job = Job("driver-first", what, script, LONGEST, alone=ALONE, code="RW4005")
    return Change(what, "the host has none, and nothing serves there", (job,))


def hold_changes(wanted: WantedDriver, reading: SeenDriver) -> list[Change]:
    """Return the change that puts the holds of a first driver on record, so that a teardown releases them.

    Their names are known when the packages are there; a change without steps writes the record alone.
    """
    staged = reading.staged
    if staged is None or staged.old or staged.version != reading.version or not wanted.settings.driver.first_by_deploy:
        return []
    held = tuple(Owned("hold", one.name) for one in reading.packages if one.held)
    missing = tuple(one for one in held if one not in wanted.owned)
    return [Change("record the holds of NVIDIA's driver", "a teardown releases them", (), missing)] if missing else []
