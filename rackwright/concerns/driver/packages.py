"""The packages that make a driver, by the repository and what the machine has beside its GPUs. Pure.

Names from NVIDIA's driver installation guide (releases 590 to 620) and Ubuntu's archive. From 590 on, and beside the
driver from 580 on, NVIDIA's names have no branch in them.
"""

from __future__ import annotations

from rackwright.concerns.docker.apt import OperatingSystem, Repository
from rackwright.concerns.driver.wanted import WantedDriver
from rackwright.settings.host_settings import HostSettings

NAME = "driver"
ARCHITECTURES = {"amd64": "x86_64", "arm64": "sbsa"}
"""dpkg's names, and those of NVIDIA's folders; servers with Arm's processors are `sbsa` there."""


def address(settings: HostSettings, system: OperatingSystem) -> str:
    """Return the address of NVIDIA's repository for a system."""
    release = "".join(system.version.split(".")) if system.id == "ubuntu" else str(system.major)
    folder = ARCHITECTURES.get(system.architecture, system.architecture)
    return f"{settings.mirrors.driver.rstrip('/')}/{system.id}{release}/{folder}"


def repository(settings: HostSettings, system: OperatingSystem) -> Repository:
    """Return NVIDIA's repository, or the mirror."""
    base = address(settings, system)
    source = f"deb [signed-by=/etc/apt/keyrings/rackwright-{NAME}.asc] {base}/ /"
    return Repository(NAME, f"{base}/3bf863cc.pub", source, settings.mirrors.driver_keys)


def first_packages(wanted: WantedDriver) -> tuple[str, ...]:
    """Return the packages of the driver for a host that has none, each with its names: open kernel modules."""
    branch = wanted.settings.driver.wanted_branch
    if wanted.settings.driver.source == "nvidia":
        return (f"nvidia-open|nvidia-open-{branch}",)
    return (f"nvidia-headless-no-dkms-{branch}-server-open", f"nvidia-utils-{branch}-server")


def first_others(wanted: WantedDriver) -> tuple[str, ...]:
    """Return those with versions of their own: Ubuntu's modules, signed, for the kernels of its archive."""
    branch = wanted.settings.driver.wanted_branch
    is_ubuntus = wanted.settings.driver.source == "distribution"
    return (f"linux-modules-nvidia-{branch}-server-open-generic",) if is_ubuntus else ()


def companions(wanted: WantedDriver) -> tuple[str, ...]:
    """Return the packages of exactly the driver's version that the machine needs beside it, each with its names."""
    branch = wanted.settings.driver.wanted_branch
    found = [f"nvidia-fabricmanager|nvidia-fabricmanager-{branch}"] if wanted.settings.hardware.fabric_manager else []
    uses_nvlink = any(one.group_transport == "nvlink" for one in wanted.settings.all_endpoints.values())
    return (*found, *([f"nvidia-imex|nvidia-imex-{branch}"] if uses_nvlink else []))


def others(wanted: WantedDriver) -> tuple[str, ...]:
    """Return the packages with versions of their own that the machine needs beside its driver.

    The subnet manager of NVLink 5, on a machine with Blackwell's GPUs that runs a fabric manager itself; its start asks
    for the switches' ports by ibstat, which is in infiniband-diags (NVIDIA/gpu-driver-container#246,
    siderolabs/extensions#893). Without a driver no GPU is known, and the profile's compute capability counts.
    """
    read = [gpu.compute_capability or "" for gpu in wanted.gpus.gpus]
    blackwell = any(one.startswith("10.") for one in read or wanted.settings.hardware.compute_capability)
    return ("nvlsm", "infiniband-diags") if blackwell and wanted.settings.hardware.fabric_manager else ()
