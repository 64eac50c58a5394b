"""NVIDIA's driver: a deploy brings its packages and says "pending"; `rackwright rollout --drivers` switches."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.concerns.driver.first import first_change, installs_first
from rackwright.concerns.driver.packages import companions, first_others, first_packages, others, repository
from rackwright.concerns.driver.rows import refusals
from rackwright.concerns.driver.seen import DISPLAY_MANAGER, HOME, LOCK, NAMES, SeenDriver, joined, parse
from rackwright.concerns.driver.wanted import DriverState, WantedDriver, wanted
from rackwright.concerns.proxy_values import proxy_values
from rackwright.hostside import durable_script, host_script
from rackwright.messages import coded
from rackwright.plan.change import Change, Job, Owned
from rackwright.plan.concern import Concern
from rackwright.settings.from_bundle import packages_address
from rackwright.settings.host_settings import ENDPOINTS, HostSettings

SWITCH = "rackwright rollout INVENTORY --drivers"
ALONE = "the packages keep coming on the host; the next run reattaches"


def read(settings: HostSettings) -> str:
    """Print the driver's packages, what would refuse others, and what is staged; nothing where none is wanted."""
    driver = settings.driver
    return host_script(
        "driver_read", version=driver.version or "", names=NAMES, home=HOME, repository=settings.mirrors.driver
    )


def changes(wanted: WantedDriver, reading: SeenDriver) -> list[Change]:
    """Return the changes that bring the wanted driver's packages, and install a first one where a deploy may do it.

    None where a row refuses them: it is reported.
    """
    first = [first_change(wanted, packages_functions(wanted.settings))] if installs_first(wanted, reading) else []
    return [*stage_changes(wanted, reading), *first]


def stage_changes(wanted: WantedDriver, reading: SeenDriver) -> list[Change]:
    """Return the change that brings the wanted driver's packages."""
    if wanted.state(reading) is not DriverState.UNSTAGED or refusals(wanted, reading):
        return []
    title = f"stage NVIDIA's driver {wanted.version}"
    job = Job("driver-stage", title, stage_script(wanted, reading), code="RW4096", alone=ALONE)
    return [Change(title, f"the host has {reading.version or 'none'}", (job,), owns=tuple(_owns(wanted, reading)))]


def _owns(wanted: WantedDriver, reading: SeenDriver) -> Iterator[Owned]:
    if _adds_repository(wanted, reading):
        yield from (Owned("apt_source", path) for path in repository(wanted.settings, wanted.system).files)


def _adds_repository(wanted: WantedDriver, reading: SeenDriver) -> bool:
    settings = wanted.settings
    return settings.driver.source == "nvidia" and not reading.is_set("repository") and not packages_address(settings)


def stage_script(wanted: WantedDriver, reading: SeenDriver) -> str:
    """Return the job that fetches the packages, and those of the way back."""
    source = repository(wanted.settings, wanted.system)
    adds = _adds_repository(wanted, reading)
    first = wanted.is_first(reading)
    of_own = [one.name for one in reading.packages if one.is_precompiled and one.driver == ""]
    return packages_functions(wanted.settings, packages_address(wanted.settings)) + durable_script(
        "driver_stage",
        version=wanted.version,
        branch=wanted.settings.driver.wanted_branch,
        old=reading.version,
        old_branch=reading.version.partition(".")[0],
        packages=" ".join(one.name for one in (*reading.of_driver, *reading.odd)),
        more=" ".join([*(first_packages(wanted) if first else ()), *companions(wanted)]),
        others=" ".join([*others(wanted), *of_own, *(first_others(wanted) if first else ())]),
        lock=f"{LOCK}{wanted.version}",
        locks=" ".join(reading.locks),
        key=source.key if adds else "",
        source=source.source if adds else "",
        fingerprints=" ".join(source.fingerprints) if adds else "",
    )


def packages_functions(settings: HostSettings, bundle: str = "") -> str:
    """Return the functions of a job that handles the driver's packages.

    bundle: address of the bundle's packages, for the job that fetches; the others need what it has fetched alone, and
    so keep running when the control machine is gone.
    """
    common = {"home": HOME, "bundle": bundle, **proxy_values(settings)}
    return host_script("apt") + host_script("driver_packages", **common) + host_script("driver_kernel")


def report(wanted: WantedDriver, reading: SeenDriver) -> str:
    """Return what waits for a switch, and what refuses it; empty where the host has the wanted driver."""
    return "\n".join(notes(wanted, reading))


def notes(wanted: WantedDriver, reading: SeenDriver) -> list[str]:
    """Return a sentence on the driver that is pending, and one for each row that refuses it."""
    state = wanted.state(reading)
    if state in (DriverState.UNMANAGED, DriverState.SETTLED) or installs_first(wanted, reading):
        return []
    refused = [f"NVIDIA's driver {wanted.version} is refused: {row.message}" for row in refusals(wanted, reading)]
    return refused or [*_failed(wanted, reading), _pending(wanted, reading, state)]


def _pending(wanted: WantedDriver, reading: SeenDriver, state: DriverState) -> str:
    now = wanted.now(reading) or "none"
    kernel = f" with the kernel {reading.staged.kernel}" if reading.staged and reading.staged.kernel else ""
    return f"NVIDIA's driver is {now}, and {wanted.version}{kernel} is {state}; next: {SWITCH}"


def _failed(wanted: WantedDriver, reading: SeenDriver) -> list[str]:
    if reading.failed.get("version") != wanted.version:
        return []
    text = f"the host went back from NVIDIA's driver {wanted.version}: {reading.failed.get('text', '')}"
    return [coded("RW4106", text)]


DRIVER: Concern[WantedDriver, SeenDriver] = Concern(
    name="driver",
    read=read,
    parse=parse,
    wanted=wanted,
    changes=changes,
    report=report,
    takes=frozenset({ENDPOINTS, "driver", "mirrors", "proxy", "bundle", "hardware"}),
    units=(DISPLAY_MANAGER,),
    joined=joined,
)
