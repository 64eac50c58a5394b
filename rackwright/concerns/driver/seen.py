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
_CORE = re.compile(r"nvidia-(kernel|dkms|driver|open|headless)|libnvidia-(compute|cfg1|ml1)|libcuda1|cuda-drivers")
"""Packages that every driver has: their version is the driver's."""
_PAIRED = re.compile(r"nvidia-(fabricmanager|imex)")
"""Packages that run with a driver of exactly their version."""
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
    def is_precompiled(self) -> bool:
        """True for Ubuntu's kernel modules, which are signed; their versions are the kernel's."""
        return self.name.startswith("linux-modules-nvidia")


@dataclass(frozen=True)
class Staged:
    """Packages that the host has fetched."""

    version: str
    old: str
    """The driver that the way back leads to; empty when there was none."""


@dataclass(frozen=True)
class SeenDriver:
    """The reading of a host; all of it is empty where the settings want no driver."""

    packages: tuple[DriverPackage, ...] = ()
    staged: Staged | None = None
    failed: Mapping[str, str] = field(default_factory=dict)
    """The `version` that this host has gone back from, and in `text` why."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Single facts by name: `running` (the kernel), `nouveau`, `headers`, `secureboot`, `product`, ..."""
    held_kernels: tuple[str, ...] = ()
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
        return tuple(one for one in self.packages if self.version and one.driver == self.version)

    @property
    def odd(self) -> tuple[DriverPackage, ...]:
        """The packages beside the driver that are not of its version, and so do not work with it."""
        paired = (one for one in self.packages if self.version and _PAIRED.match(one.name))
        return tuple(one for one in paired if one.driver not in ("", self.version))

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
    staged = pairs(texts.get(f"{HOME}/staged") or "")
    return SeenDriver(
        tuple(sorted(packages, key=lambda one: one.name)),
        Staged(staged["version"], staged.get("old", "")) if staged.get("version") else None,
        {key: printable(text) for key, text in pairs(texts.get(f"{HOME}/failed") or "").items()},
        values,
        tuple(row[1] for row in rows if row[0] == "heldkernel" and row[1:]),
        values.get("draws") == "yes",
    )
