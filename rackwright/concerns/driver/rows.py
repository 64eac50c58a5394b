"""The refusals of another driver on a host: rows of data, each with its fix. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rackwright.concerns.driver.packages import ARCHITECTURES
from rackwright.concerns.driver.seen import SeenDriver
from rackwright.concerns.driver.wanted import DriverState, WantedDriver
from rackwright.messages import coded

ROOM = 2 * 1024
"""KiB on /boot beside the initial file system that is written again: the kernel's own files."""
DGX_OS = "sudo apt-get update && sudo apt-get full-upgrade, then reboot"
"""NVIDIA's own way on DGX OS, whose repository has the driver that its firmware was tested with."""


@dataclass(frozen=True)
class DriverRefusal:
    """A reason to give a host no other driver, and its remedy."""

    code: str
    text: str
    fix: str

    @property
    def message(self) -> str:
        """The row for people."""
        return coded(self.code, f"{self.text}; next: {self.fix}")


Row = Callable[[WantedDriver, SeenDriver], Iterator[tuple[str, str]]]
"""Yields what is in the way, with its fix; nothing where nothing is."""


def of_its_system(wanted: WantedDriver, reading: SeenDriver) -> Iterator[tuple[str, str]]:
    """Refuse DGX OS and Spark: their driver comes with the system, from a repository of their own."""
    product = reading.values.get("product", "")
    if wanted.is_spark or "Spark" in product:
        yield f"{product or 'a GB10'} gets its driver with its system", f"on it, in a window of its own: {DGX_OS}"
    elif reading.is_set("dgx"):
        yield "DGX OS brings its driver itself", f"on it, in a window of its own: {DGX_OS}"


def another_system(wanted: WantedDriver, _: SeenDriver) -> Iterator[tuple[str, str]]:
    """Refuse a system without packages of NVIDIA's that Rackwright knows."""
    system, name = wanted.system, wanted.settings.driver.source
    if system.id not in ("debian", "ubuntu"):
        yield f"driver.version is for Debian and Ubuntu, and this is {system.id or 'unknown'}", "install it by hand"
    elif system.architecture not in ARCHITECTURES:
        yield f"NVIDIA has no packages for {system.architecture}", "install it by hand"
    elif name == "distribution" and system.id == "debian":
        yield "Debian's archive has no open kernel modules of such a driver", "driver.source: nvidia"


def not_packages(wanted: WantedDriver, reading: SeenDriver) -> Iterator[tuple[str, str]]:
    """Refuse a driver without packages: NVIDIA's .run installer was there, and both would own the same files."""
    if reading.version or wanted.is_first(reading):
        return
    running = wanted.gpus.module or wanted.gpus.driver
    fix = f"on it, when it is drained: nvidia-uninstall, then the packages of {running}, and reboot"
    yield f"the driver {running} was not installed by packages, so there is no way back to it", fix


def nouveau(_: WantedDriver, reading: SeenDriver) -> Iterator[tuple[str, str]]:
    """Refuse a host whose GPUs nouveau has."""
    if reading.is_set("nouveau"):
        fix = (
            "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' > /etc/modprobe.d/blacklist-nouveau.conf; "
            "update-initramfs -u; reboot"
        )
        yield "the kernel has loaded nouveau, which holds the GPUs", fix


def secure_boot(wanted: WantedDriver, reading: SeenDriver) -> Iterator[tuple[str, str]]:
    """Refuse modules that are built on the host where the firmware loads signed ones alone."""
    if (
        reading.values.get("secureboot") != "1"
        or reading.values.get("mok") == "enrolled"
        or _is_precompiled(wanted, reading)
    ):
        return
    fix = (
        "driver.source: distribution on Ubuntu, with linux-modules-nvidia-...-open, which are signed; or on its "
        "console: mokutil --import /var/lib/shim-signed/mok/MOK.der, and reboot"
    )
    yield f"Secure Boot is on, and {wanted.version} would be built here, without a key that the firmware knows", fix


def headers(wanted: WantedDriver, reading: SeenDriver) -> Iterator[tuple[str, str]]:
    """Refuse DKMS without the running kernel's headers: no module would be built."""
    if _is_built(wanted, reading) and not reading.is_set("headers"):
        kernel = reading.values.get("running", "")
        text = f"the headers of the running kernel {kernel} are missing, so DKMS could build no module"
        newest = f"apt-get install {_newest_kernel(wanted, reading)}, and reboot into that kernel"
        yield text, f"apt-get install linux-headers-{kernel}; where the archive has them no longer: {newest}"


def headers_of_next(wanted: WantedDriver, reading: SeenDriver) -> Iterator[tuple[str, str]]:
    """Refuse DKMS where the next boot is another kernel's, without headers: the host would come up without a driver."""
    if (kernel := reading.values.get("next")) and _is_built(wanted, reading):
        text = f"the next boot is that of the kernel {kernel}, whose headers are missing"
        fix = f"apt-get install linux-headers-{kernel}, or remove that kernel"
        yield f"{text}: DKMS could build no module for it", fix


def _is_built(wanted: WantedDriver, reading: SeenDriver) -> bool:
    first = wanted.is_first(reading) and wanted.settings.driver.source == "nvidia"
    return first or any("dkms" in one.name for one in reading.packages)


def _newest_kernel(wanted: WantedDriver, reading: SeenDriver) -> str:
    """Return the packages of the archive's newest kernel and its headers, by what the host follows already."""
    usual = "generic" if wanted.system.id == "ubuntu" else wanted.system.architecture
    image = next(iter(reading.kernel_packages), f"linux-image-{usual}")
    return f"{image} {image.replace('image', 'headers', 1)}"


def held_kernel(wanted: WantedDriver, reading: SeenDriver) -> Iterator[tuple[str, str]]:
    """Refuse precompiled modules beside a held kernel: they come for the archive's newest one."""
    if reading.held_kernels and _is_precompiled(wanted, reading):
        names = ", ".join(reading.held_kernels)
        fix = f"apt-mark unhold {' '.join(reading.held_kernels)}, and reboot into the newest kernel; or modules by DKMS"
        yield f"{names} is held, and precompiled modules come for the newest kernel", fix


def desktop(wanted: WantedDriver, reading: SeenDriver) -> Iterator[tuple[str, str]]:
    """Refuse a host with a running X server or desktop: it uses the libraries that would be replaced."""
    if reading.draws or wanted.draws:
        text = "a display manager or a desktop runs on it and uses the driver"
        yield text, "systemctl set-default multi-user.target && systemctl isolate multi-user.target"


def boot_room(_: WantedDriver, reading: SeenDriver) -> Iterator[tuple[str, str]]:
    """Refuse a full /boot: the kernel's initial file system is written again with the module, beside the old one."""
    free, initrd = reading.number("bootfree"), reading.number("initrd")
    if free is None or initrd is None:
        return
    needed = initrd // 1024 + ROOM
    if free < needed:
        text = f"its /boot has {free // 1024} MiB free, and a new initial file system needs {needed // 1024 + 1}"
        yield text, "apt-get autoremove --purge, which takes old kernels away"


def _is_precompiled(wanted: WantedDriver, reading: SeenDriver) -> bool:
    first = wanted.is_first(reading) and wanted.settings.driver.source == "distribution"
    return first or any(one.is_precompiled for one in reading.packages)


ROWS: tuple[tuple[str, Row], ...] = (
    ("RW4006", of_its_system),
    ("RW4016", another_system),
    ("RW4026", not_packages),
    ("RW4036", nouveau),
    ("RW4046", secure_boot),
    ("RW4056", headers),
    ("RW4054", headers_of_next),
    ("RW4066", held_kernel),
    ("RW4076", desktop),
    ("RW4086", boot_room),
)
"""The rows, in the order in which they are shown; of the first two, one says it all."""


def refusals(wanted: WantedDriver, reading: SeenDriver) -> list[DriverRefusal]:
    """Return what refuses the wanted driver here; empty where the host has it already, or none is wanted."""
    if wanted.state(reading) in (DriverState.UNMANAGED, DriverState.SETTLED):
        return []
    found = [DriverRefusal(code, *one) for code, row in ROWS for one in row(wanted, reading)]
    return found[:1] if found and found[0].code in ("RW4006", "RW4016") else found
