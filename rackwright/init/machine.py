"""A machine as `rackwright init` reads it: GPUs, driver, architecture, system. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rackwright.messages import counted, printable
from rackwright.profiles import catalog
from rackwright_engines.fit.gpu import gpu_type

LONGEST = 80
"""Characters of what a host says in one value."""
NONE = "it has no NVIDIA GPU"
MOST = 64
"""GPUs of a host at most: what says more is not a GPU host's nvidia-smi."""


@dataclass(frozen=True)
class Machine:
    """A machine, as far as it could be read."""

    gpu: str = ""
    """The product name of nvidia-smi; of several kinds, the most frequent one."""
    gpus: int = 0
    """GPUs of that kind."""
    more: str = ""
    """GPUs of other kinds."""
    architecture: str = ""
    driver: str = ""
    system: str = ""
    has_sudo: bool = False
    devices: int = 0
    """NVIDIA's GPUs on the PCI bus."""
    trouble: str = ""
    """The reason for which it could not be read, or has no GPU that answers."""

    @property
    def fitting(self) -> tuple[str, ...]:
        """Return the profiles that fit it, best first."""
        return catalog.fitting(self.gpu, self.gpus, self.architecture) if self.gpu else ()

    def fits(self, profile: str) -> bool:
        """Return True for a profile that it can serve, or if nothing is known of its GPUs."""
        one, kind = catalog.profile(profile), gpu_type(self.gpu)
        if not self.gpu:
            return not self.has_none
        enough = self.gpus >= one.gpu_count and one.architecture in ("", self.architecture)
        return enough and kind is not None and kind.name in one.gpu_models

    @property
    def has_none(self) -> bool:
        """True for a machine that was read, and has no GPU of NVIDIA's at all."""
        return self.trouble == NONE

    @property
    def brief(self) -> str:
        """Return its GPUs and their driver."""
        return f"{self.gpus} x {self.gpu}, driver {self.driver}"

    @property
    def text(self) -> str:
        """Return what is known of it, in one line."""
        gpus = f"{self.gpus} x {self.gpu}" if self.gpu else "no GPU that answers"
        driver = f"driver {self.driver}" if self.driver else ""
        return ", ".join(filter(None, (gpus, self.more, self.architecture, driver, self.system)))


def machine_of(lines: Iterable[str]) -> Machine:
    """Return what the lines of machine_read.sh say; other lines are left out."""
    found: dict[str, list[str]] = {}
    for row in lines:
        key, _, value = row.partition(" ")
        found.setdefault(key, []).append(printable(value.strip(), longest=LONGEST))
    gpus = [tuple(map(str.strip, value.rpartition(",")[::2])) for value in found.get("gpu", [])[:MOST]]
    kinds = Counter(name for name, _ in gpus).most_common()
    devices = next((int(value) for value in found.get("devices", []) if value.isdecimal() and len(value) < 4), 0)
    return Machine(
        gpu=kinds[0][0] if kinds else "",
        gpus=kinds[0][1] if kinds else 0,
        more=", ".join(f"{count} x {name}" for name, count in kinds[1:]),
        architecture=_first(found, "arch"),
        driver=gpus[0][1] if gpus else "",
        system=_first(found, "system"),
        has_sudo="yes" in found.get("sudo", []),
        devices=devices,
        trouble="" if kinds else _why_none(found, devices),
    )


def _first(found: dict[str, list[str]], key: str) -> str:
    return next(iter(found.get(key, [])), "")


def _why_none(found: dict[str, list[str]], devices: int) -> str:
    status, error = _first(found, "status"), _first(found, "error")
    if not found.get("arch"):
        return "it did not answer as a Linux host does"
    if status in ("124", "137"):
        return "its NVIDIA driver does not answer within 30 s: journalctl -k --grep NVRM"
    if status not in ("", "0"):
        return f"nvidia-smi fails there: {error or f'status {status}'}"
    if devices:
        return f"it has {counted(devices, 'NVIDIA GPU')} and no driver: install NVIDIA's driver"
    return NONE


def distinct(machines: Iterable[Machine]) -> list[tuple[str, ...]]:
    """Return the different sets of profiles that fit some of the machines, in their order."""
    return list(dict.fromkeys(machine.fitting for machine in machines if machine.fitting))


def nearest_fit(machine: Machine, profiles: Sequence[str]) -> str:
    """Return the first of the chosen profiles that fits a machine; empty where none does."""
    return next((name for name in profiles if machine.fits(name)), "")
