"""NVIDIA's driver: a deploy brings its packages and says "pending"; `rackwright rollout --drivers` switches."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.concerns.driver.packages import companions, first_others, first_packages, others, repository
from rackwright.concerns.driver.rows import refusals
from rackwright.concerns.driver.seen import DISPLAY_MANAGER, HOME, NAMES, SeenDriver, joined, parse
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
    """Print the driver's packages, what stands in their way, and what is staged; nothing where none is wanted."""
    driver = settings.driver
    return host_script(
        "driver_read", version=driver.version or "", names=NAMES, home=HOME, repository=settings.mirrors.driver
    )


def changes(wanted: WantedDriver, seen: SeenDriver) -> list[Change]:
    """Return the change that brings the wanted driver's packages; none where a row refuses them: it is reported."""
    if wanted.state(seen) is not DriverState.UNSTAGED or refusals(wanted, seen):
        return []
    title = f"stage NVIDIA's driver {wanted.version}"
    job = Job("driver-stage", title, stage_script(wanted, seen), code="RW4096", alone=ALONE)
    return [Change(title, f"the host has {seen.version or 'none'}", (job,), owns=tuple(_owns(wanted, seen)))]


def _owns(wanted: WantedDriver, seen: SeenDriver) -> Iterator[Owned]:
    if _adds_repository(wanted, seen):
        yield from (Owned("apt_source", path) for path in repository(wanted.settings, wanted.system).files)


def _adds_repository(wanted: WantedDriver, seen: SeenDriver) -> bool:
    settings = wanted.settings
    return settings.driver.source == "nvidia" and not seen.is_set("repository") and not packages_address(settings)


def stage_script(wanted: WantedDriver, seen: SeenDriver) -> str:
    """Return the job that fetches the packages, and those of the way back."""
    source = repository(wanted.settings, wanted.system)
    adds = _adds_repository(wanted, seen)
    first = wanted.is_first(seen)
    of_own = [one.name for one in seen.packages if not one.driver and one.name.startswith("linux-modules-nvidia")]
    return (
        host_script("apt")
        + host_script("driver_packages", **_common(wanted.settings))
        + durable_script(
            "driver_stage",
            version=wanted.version,
            branch=wanted.settings.driver.wanted_branch,
            old=seen.version,
            old_branch=seen.version.partition(".")[0],
            packages=" ".join(one.name for one in (*seen.of_driver, *seen.odd)),
            more=" ".join([*(first_packages(wanted) if first else ()), *companions(wanted)]),
            others=" ".join([*others(wanted), *of_own, *(first_others(wanted) if first else ())]),
            key=source.key if adds else "",
            source=source.source if adds else "",
            fingerprints=" ".join(source.fingerprints) if adds else "",
        )
    )


def _common(settings: HostSettings) -> dict[str, str]:
    return {"home": HOME, "bundle": packages_address(settings), **proxy_values(settings)}


def packages_functions(settings: HostSettings) -> str:
    """Return the functions of a job that handles the driver's packages."""
    return host_script("apt") + host_script("driver_packages", **_common(settings))


def report(wanted: WantedDriver, seen: SeenDriver) -> str:
    """Return what waits for a switch, and what refuses it; empty where the host has the wanted driver."""
    return "\n".join(notes(wanted, seen))


def notes(wanted: WantedDriver, seen: SeenDriver) -> list[str]:
    """Return a sentence on the driver that is pending, and one for each row that refuses it."""
    state = wanted.state(seen)
    if state in (DriverState.UNMANAGED, DriverState.SETTLED):
        return []
    refused = [f"NVIDIA's driver {wanted.version} is refused: {row.message}" for row in refusals(wanted, seen)]
    return refused or [*_failed(wanted, seen), _pending(wanted, seen, state)]


def _pending(wanted: WantedDriver, seen: SeenDriver, state: DriverState) -> str:
    now = wanted.now(seen) or "none"
    return f"NVIDIA's driver is {now}, and {wanted.version} is {state}; next: {SWITCH}"


def _failed(wanted: WantedDriver, seen: SeenDriver) -> list[str]:
    if seen.failed.get("version") != wanted.version:
        return []
    return [coded("RW4106", f"the host went back from NVIDIA's driver {wanted.version}: {seen.failed.get('text', '')}")]


DRIVER: Concern[WantedDriver, SeenDriver] = Concern(
    name="driver",
    read=read,
    parse=parse,
    wanted=wanted,
    changes=changes,
    report=report,
    alone=True,
    takes=frozenset({ENDPOINTS, "driver", "mirrors", "proxy", "bundle", "hardware"}),
    units=(DISPLAY_MANAGER,),
    joined=joined,
)
