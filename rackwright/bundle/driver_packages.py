"""NVIDIA's driver in a bundle: what a host's `driver.version` may install, by whatever names it has its driver now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rackwright.bundle.apt_root import AptRoot, PackageFile
from rackwright.concerns.docker.apt import OperatingSystem, Repository
from rackwright.concerns.driver.packages import companions, first_others, first_packages, others, repository
from rackwright.concerns.driver.seen import LOCK, NAMES
from rackwright.concerns.driver.wanted import WantedDriver
from rackwright.concerns.gpus import SeenGpus
from rackwright.messages import RackwrightError, few
from rackwright.settings.host_settings import HostSettings

REPACK = "dpkg-repack"
"""Packs the driver of now again, which is in no archive that a host reaches: the way back."""
_NAMES = re.compile(NAMES)


@dataclass(frozen=True)
class BundledDriver:
    """One version of the driver."""

    version: str
    needed: tuple[str, ...]
    """Packages of that version, each with its names, with | between them."""
    others: tuple[str, ...]
    """Packages that have versions of their own."""

    @property
    def pin(self) -> str:
        """Preferences of apt by which what the driver needs is of its version, too."""
        return f"Package: *nvidia* cuda-drivers* libcuda1 libnv*\nPin: version {self.version}-*\nPin-Priority: 1001\n"


def bundled_driver(settings: HostSettings, system: OperatingSystem) -> tuple[BundledDriver, Repository | None] | None:
    """Return the driver that a host of a system may get, and the repository that has it; None without one."""
    wanted = WantedDriver(settings, system, SeenGpus())
    is_ubuntus = settings.driver.source == "distribution"
    if not wanted.version or (is_ubuntus and system.id != "ubuntu"):
        return None
    needed = (*first_packages(wanted), *companions(wanted))
    driver = BundledDriver(wanted.version, needed, (*others(wanted), *first_others(wanted), REPACK))
    return driver, None if is_ubuntus else repository(settings, system)


def driver_files(root: AptRoot, driver: BundledDriver) -> list[PackageFile]:
    """Return the driver's files, and all that they need. Raises RackwrightError where needed ones are missing.

    A host has its driver by one set of names or another, which conflict with each other: each name is asked for alone,
    and one that cannot be installed in that version is left out.
    """
    versions = versions_of(driver.version, root.versions(_NAMES))
    needed = [_chosen(names, versions, driver.version) for names in driver.needed]
    found = root.packages([*needed, *driver.others])
    for name, version in versions.items():
        found += _if_any(root, f"{name}={version}")
    return list(dict.fromkeys(found))


def versions_of(driver: str, versions: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the newest version of each package that belongs to a driver, its version-locking package included."""
    its = re.compile(rf"(?:\d+:)?{re.escape(driver)}(?:-|$)")
    newest = {
        name: [one for one in some if its.match(one)] or _of_lock(name, driver, some) for name, some in versions.items()
    }
    return {name: some[0] for name, some in newest.items() if some}


def _of_lock(name: str, driver: str, versions: Sequence[str]) -> Sequence[str]:
    return versions if name == f"{LOCK}{driver}" else ()


def _chosen(names: str, versions: Mapping[str, str], version: str) -> str:
    for name in names.split("|"):
        if name in versions:
            return f"{name}={versions[name]}"
    text = f"there is no {names.replace('|', ' and no ')} of NVIDIA's driver {version} in its repository"
    present = few(list(versions)) if versions else "nothing"
    raise RackwrightError(f"{text}, which has {present} of it; next: another driver.version", code="RW3919")


def _if_any(root: AptRoot, name: str) -> Iterable[PackageFile]:
    try:
        return root.packages([name])
    except RackwrightError:
        return ()
