"""NVIDIA's driver on a host: its packages, what would refuse another one, what is staged. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from rackwright.messages import printable
from rackwright.paths import STATE
from rackwright.plan.answers import Answers
from rackwright.plan.reading import files, lines_of, pairs, whole_number

HOME = f"{STATE}/driver"
"""Folder with the staged packages, and those of the way back, one below it for each staged version."""
NAMES = (
    "nvidia-|libnvidia-|cuda-drivers|xserver-xorg-video-nvidia|linux-(modules|objects|signatures)-nvidia|libcuda1|"
    "libnvcuvid|libnvsdm|nvlsm|firmware-nvidia"
)
"""Start of the names of the driver's packages and of those beside it, as a regular expression for awk and Python."""
_CORE = re.compile(
    r"nvidia-(kernel|dkms|driver(?!-pinning)|open|headless)|libnvidia-(compute|cfg1|ml1)|libcuda1|cuda-drivers"
)
"""Packages that every driver has: their version is the driver's."""
_PAIRED = re.compile(r"nvidia-(fabricmanager|imex)")
"""Packages that run with a driver of exactly their version."""
LOCK = "nvidia-driver-pinning-"
"""Start of the names of NVIDIA's version-locking packages: each keeps apt at one driver, or at one branch."""
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")
_UPSTREAM = re.compile(r"(?:\d+:)?([1-9]\d{2}\.\d+(?:\.\d+)?)(?:-|$)")
DISPLAY_MANAGER = "display-manager.service"


@dataclass(frozen=True)
class DriverPackage:
    """One installed package."""

    name: str
    version: str
    held: bool

    @property
    def driver(self) -> str:
        """The driver's version that its own begins with; empty for a package with versions of its own."""
        found = _UPSTREAM.match(self.version)
        return found[1] if found else ""

    @property
    def is_lock(self) -> bool:
        """True for a package that keeps apt at a driver: it belongs to that one alone."""
        return self.name.startswith(LOCK)

    @property
    def is_precompiled(self) -> bool:
        """True for Ubuntu's kernel modules, which are signed; their versions are the kernel's."""
        return self.name.startswith("linux-modules-nvidia")


@dataclass(frozen=True)
class Staged:
    """Packages that the host has fetched."""

    version: str
    old: str
    """The driver that the way back leads to; empty when there was none."""
    holds: tuple[str, ...] = ()
    """The packages that a switch holds."""
    kernel: str = ""
    """The kernel that comes with it, and is booted once before it is the default; empty for that of now."""


@dataclass(frozen=True)
class SeenDriver:
    """The reading of a host; all of it is empty where the settings want no driver."""

    packages: tuple[DriverPackage, ...] = ()
    staged: Staged | None = None
    failed: Mapping[str, str] = field(default_factory=dict)
    """The `version` that this host has gone back from, and in `text` why."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Single facts by name: `running` (the kernel), `nouveau`, `headers`, `secureboot`, `product`, ...

    `next`: the kernel of the next boot, where it has no headers.
    """
    held_kernels: tuple[str, ...] = ()
    kernel_packages: tuple[str, ...] = ()
    """The packages that bring the archive's newest kernel: `linux-image-amd64`, `linux-image-generic`, ..."""
    draws: bool = False
    """True while a display manager runs."""

    def is_set(self, name: str) -> bool:
        """Return True for a fact that was found."""
        return self.values.get(name) == "yes"

    @property
    def version(self) -> str:
        """The version of the installed driver by its packages; empty without any."""
        core = Counter(one.driver for one in self.packages if one.driver and _CORE.match(one.name))
        return core.most_common(1)[0][0] if core else ""

    @property
    def of_driver(self) -> tuple[DriverPackage, ...]:
        """The packages that have the driver's version."""
        of_it = (package for package in self.packages if self.version and package.driver == self.version)
        return tuple(package for package in of_it if not package.is_lock)

    @property
    def locks(self) -> tuple[str, ...]:
        """The names of the packages that keep apt at a driver."""
        return tuple(one.name for one in self.packages if one.is_lock)

    @property
    def held(self) -> frozenset[str]:
        """The names of the packages that are held."""
        return frozenset(one.name for one in self.packages if one.held)

    @property
    def odd(self) -> tuple[DriverPackage, ...]:
        """The packages beside the driver that are not of its version, and so do not work with it."""
        paired = (one for one in self.packages if self.version and _PAIRED.match(one.name))
        return tuple(one for one in paired if one.driver not in ("", self.version))

    def other_kernel(self, version: str) -> str:
        """Return the kernel that comes with a staged driver; empty where that is the one that runs."""
        staged = self.staged
        other = staged is not None and staged.version == version and staged.kernel != self.values.get("running")
        return staged.kernel if staged and other else ""

    def number(self, name: str) -> int | None:
        """Return a fact that is a whole number."""
        return whole_number(self.values.get(name, ""))


def joined(output: str, answers: Answers) -> str:
    """Return the reading's lines, and whether a display manager runs."""
    return "\n".join([output, *(["draws=yes"] if output.strip() and answers.is_active(DISPLAY_MANAGER) else [])])


def parse(output: str) -> SeenDriver:
    """Parse the reading."""
    rows = [row.split(" ") for row in lines_of(output)]
    values, texts = pairs(output), files(output)
    packages = (DriverPackage(row[1], row[3], row[2] == "hold") for row in rows if row[0] == "package" and row[3:])
    return SeenDriver(
        tuple(sorted(packages, key=lambda one: one.name)),
        _staged(pairs(texts.get(f"{HOME}/staged") or "")),
        {key: printable(text) for key, text in pairs(texts.get(f"{HOME}/failed") or "").items()},
        values,
        tuple(row[1] for row in rows if row[0] == "heldkernel" and row[1:]),
        tuple(sorted(row[1] for row in rows if row[0] == "kernels" and _NAME.fullmatch(row[-1]))),
        values.get("draws") == "yes",
    )


def _staged(values: Mapping[str, str]) -> Staged | None:
    if not values.get("version"):
        return None
    holds = tuple(filter(_NAME.fullmatch, values.get("hold", "").split()))
    kernel = values.get("kernel", "")
    return Staged(values["version"], values.get("old", ""), holds, kernel if _NAME.fullmatch(kernel) else "")
