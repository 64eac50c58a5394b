"""The wanted driver of a host, with what else decides about it; and its state. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rackwright.concerns.docker import DOCKER
from rackwright.concerns.docker.apt import OperatingSystem
from rackwright.concerns.driver.seen import SeenDriver
from rackwright.concerns.gpus import GPUS, SeenGpus
from rackwright.plan.change import Owned
from rackwright.plan.concern import HostReading
from rackwright.plan.ownership import RECORD
from rackwright.settings.host_settings import HostSettings


class DriverState(StrEnum):
    """The way of a host to its driver, and how far it is."""

    UNMANAGED = "not set"
    SETTLED = "as wanted"
    INSTALLED = "installed, and not loaded: it waits for a restart"
    STAGED = "staged: pending"
    UNSTAGED = "pending, and not staged yet"


@dataclass(frozen=True)
class WantedDriver:
    """The settings, and what other concerns read of the host."""

    settings: HostSettings
    system: OperatingSystem
    gpus: SeenGpus
    owned: frozenset[Owned] = frozenset()

    @property
    def version(self) -> str:
        """The wanted version; empty where the driver is left as it is."""
        return self.settings.driver.version or ""

    @property
    def is_spark(self) -> bool:
        """True for a GB10, whose driver belongs to its system; without a driver the profile says what it is."""
        names = [gpu.name for gpu in self.gpus.gpus]
        return any("GB10" in name for name in names or self.settings.hardware.gpu_models)

    @property
    def fabric(self) -> str:
        """`yes`, as jobs take it, where the machine runs a fabric manager itself."""
        return "yes" if self.settings.hardware.fabric_manager else ""

    @property
    def draws(self) -> bool:
        """True if a desktop's process uses a GPU."""
        return any("G" in process.kind for gpu in self.gpus.gpus for process in gpu.processes)

    def is_first(self, reading: SeenDriver) -> bool:
        """Return True for a host without any driver, by packages or otherwise."""
        return not (reading.version or self.gpus.module or self.gpus.driver)

    def has_without_packages(self, reading: SeenDriver) -> bool:
        """Return True where the wanted driver runs, brought by something else than packages."""
        return not reading.version and self.gpus.module == self.gpus.driver == self.version

    def now(self, reading: SeenDriver) -> str:
        """Return the driver of now: the loaded module's version, or else the packages'."""
        return self.gpus.module or reading.version

    def state(self, reading: SeenDriver) -> DriverState:
        """Return how far the host is."""
        if not self.version:
            return DriverState.UNMANAGED
        if self.has_without_packages(reading):
            return DriverState.SETTLED
        if reading.version == self.version and not reading.odd:
            return DriverState.SETTLED if self.gpus.module == self.version else DriverState.INSTALLED
        staged = reading.staged is not None and (reading.staged.version, reading.staged.old) == (
            self.version,
            reading.version,
        )
        return DriverState.STAGED if staged else DriverState.UNSTAGED


def wanted(settings: HostSettings, reading: HostReading) -> WantedDriver:
    """Return the wanted driver of a host."""
    return WantedDriver(settings, reading[DOCKER].system, reading[GPUS], reading[RECORD])
