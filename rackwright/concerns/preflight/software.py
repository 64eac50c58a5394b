"""Checks of the software below an endpoint: the driver, the container toolkit, the fabric manager."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

from rackwright.concerns.docker import WantedDocker, existing
from rackwright.concerns.endpoint.switch.foreign_units import next_step
from rackwright.concerns.gpus import SeenGpus
from rackwright.concerns.preflight.row import Case, Check, figures, version_tuple
from rackwright.plan.reading import whole_number

Verdicts = Iterator[tuple[bool, str, str]]
CAP_SYS_RESOURCE = 24
CAPABILITIES = re.compile(r"[0-9a-fA-F]{1,16}")


def upgrades(case: Case) -> Verdicts:
    """Check for automatic upgrades of the driver or Docker while an endpoint serves."""
    if not case.docker.unattended:
        return
    present = existing(WantedDocker(case.settings, None, case.owned), case.docker)
    loose = sorted(name for name in present if not case.docker.packages[name].held)
    if case.settings.docker.hold_existing:
        loose = []
    text = f"unattended-upgrades may move {', '.join(loose)}" if loose else "nothing that serves can be moved"
    yield not loose, text, "docker.hold_existing: true, or on the host: apt-mark hold " + " ".join(loose)


def driver_answers(case: Case) -> Verdicts:
    """Check that nvidia-smi answers."""
    gpus = case.gpus
    if not gpus.error:
        yield True, f"NVIDIA driver {gpus.driver}", ""
    elif "mismatch" in gpus.error.lower():
        module, library = gpus.module or "?", gpus.driver or "?"
        text = f"the loaded kernel module is {module}, the libraries are {library}"
        yield False, text, "the driver was upgraded under a running kernel module: reboot"
    elif case.first_driver:
        yield True, f"none yet; driver() installs {case.first_driver}", ""
    elif gpus.module is None:
        yield False, gpus.error, _install_driver(case)
    else:
        yield False, f"{gpus.error}{lost(gpus)}", "journalctl -k --grep NVRM; nvidia-smi"


def lost(gpus: SeenGpus) -> str:
    """Return the kernel's message about a lost GPU, to append to the finding; not always with an Xid."""
    return f"; the kernel: {gpus.fallen}" if gpus.fallen else ""


def _install_driver(case: Case) -> str:
    if case.driver_fixes:
        return "; ".join(case.driver_fixes)
    if case.settings.driver.version:
        return "rackwright rollout INVENTORY --drivers --limit HOST"
    minimum = (case.settings.hardware.driver_minimum or "580").split(".")[0]
    if case.docker.system.family == "ubuntu":
        return f"apt-get install -y nvidia-driver-{minimum}-server-open && reboot"
    return "install NVIDIA's driver (https://docs.nvidia.com/datacenter/tesla/driver-installation-guide) and reboot"


def module(case: Case) -> Verdicts:
    """Check that the kernel module and the libraries have the same version."""
    gpus = case.gpus
    if gpus.error or gpus.module is None or gpus.driver is None:
        return
    text = f"both {gpus.module}" if gpus.module == gpus.driver else f"module {gpus.module}, libraries {gpus.driver}"
    yield gpus.module == gpus.driver, text, "reboot, so that the module of the installed driver is loaded"


def driver_minimum(case: Case) -> Verdicts:
    """Check that the driver is not older than the image requires."""
    wanted, driver = case.settings.hardware.driver_minimum, case.gpus.driver
    if wanted is None or driver is None or case.gpus.error:
        return
    minimum = version_tuple(wanted)
    newer = version_tuple(driver)[: len(minimum)] >= minimum
    yield newer, f"{driver}, at least {wanted} is needed", _install_driver(case)


def toolkit(case: Case) -> Verdicts:
    """Check that NVIDIA's container toolkit has a version that keeps GPUs attached through a daemon-reload."""
    if "toolkit" not in case.docker.has:
        yield True, "none yet; it will be installed", ""
        return
    package = case.docker.packages.get("nvidia-container-toolkit")
    version = case.machine.values.get("toolkit") or (package.version if package else "")
    minimum = str(figures()["toolkit"]["version_minimum"])
    fix = (
        f"a systemd daemon-reload takes the GPUs from containers of older ones: set docker.toolkit_version "
        f"to {minimum}.0-1 or newer, or run: apt-get install -y --only-upgrade nvidia-container-toolkit"
    )
    good = not version or version_tuple(version) >= version_tuple(minimum)
    yield good, version or "installed, version unknown", fix


def toolkit_mode(case: Case) -> Verdicts:
    """Reject `mode = "legacy"`, which loses GPUs at a daemon-reload in every version."""
    if case.machine.toolkit_config is None:
        return
    mode = runtime_mode(case.machine.toolkit_config)
    fix = "nvidia-ctk config --in-place --set nvidia-container-runtime.mode=auto"
    yield mode != "legacy", f"mode {mode}", f"a systemd daemon-reload would take the GPUs from containers: {fix}"


def runtime_mode(text: str) -> str:
    """Return the runtime's mode in the toolkit's config.toml; `auto` when it is missing."""
    try:
        section = tomllib.loads(text).get("nvidia-container-runtime", {})
    except tomllib.TOMLDecodeError:
        return "unreadable"
    return str(section.get("mode", "auto")) if isinstance(section, dict) else "auto"


def fabric_manager(case: Case) -> Verdicts:
    """Check that the fabric manager has the driver's version, only where the host itself runs it."""
    if not case.settings.hardware.fabric_manager or case.first_driver:
        return
    values, driver = case.machine.values, case.gpus.driver or ""
    state, version = values.get("fabric.ActiveState", "inactive"), values.get("fabric.version", "")
    start = "systemctl enable --now nvidia-fabricmanager"
    if values.get("fabric.LoadState") != "loaded":
        yield False, "not installed", _install_fabric_manager(case, driver, start)
        return
    yield state == "active", f"nvidia-fabricmanager is {state}", f"{start}; journalctl -u nvidia-fabricmanager"
    if version and driver:
        fix = "install the fabric manager of the driver's very version, then reboot"
        yield version == driver, f"version {version}, driver {driver}", fix


def _install_fabric_manager(case: Case, driver: str, start: str) -> str:
    """Return the fix. driver: the installed one; without it no version is known: `NAME-` has apt remove a package."""
    if driver:
        return f"apt-get install -y nvidia-fabricmanager-{driver.partition('.')[0]}; {start}"
    if case.settings.driver.version:
        return "it comes with the driver, by the driver's fix"
    return f"the driver first, then the fabric manager of its very version; {start}"


def persistence(case: Case) -> Verdicts:
    """Check persistence mode: without it the driver unloads between two processes: slow starts, lost settings."""
    off = [gpu.index for gpu in case.used_gpus if gpu.persistence is False]
    if any(gpu.persistence is not None for gpu in case.used_gpus):
        text = f"off on GPU {', '.join(map(str, off))}" if off else "on"
        fix = "systemctl enable --now nvidia-persistenced; without that unit, until the next boot: nvidia-smi -pm 1"
        yield not off, text, fix


def cgroups(case: Case) -> Verdicts:
    """Check for cgroup v2: systemd and Docker are dropping version 1's rules for a container's limits and devices."""
    version = case.machine.values.get("cgroup")
    if version is None:
        return
    fix = "boot without systemd.unified_cgroup_hierarchy=0 on the kernel's command line: /etc/default/grub; update-grub"
    yield version == "v2", version, fix


def locked_memory(case: Case) -> Verdicts:
    """Check the memory that a container may lock: dockerd's limit counts, never a login's."""
    limit = case.machine.values.get("memlock")
    if limit is None:
        return
    capabilities = CAPABILITIES.fullmatch(case.machine.values.get("capabilities", ""))
    may_raise = capabilities is not None and int(capabilities[0], 16) >> CAP_SYS_RESOURCE & 1 == 1
    good = limit == figures()["containers"]["memlock"] or may_raise
    text = "unlimited" if limit == "unlimited" else f"{limit} bytes{', dockerd may raise it' if may_raise else ''}"
    yield good, text, "systemctl edit docker.service: add LimitMEMLOCK=infinity under [Service]; then restart docker"


def open_files(case: Case) -> Verdicts:
    """Check the limit of open files of a container."""
    limit = case.machine.values.get("nofile")
    if limit is None:
        return
    least = int(figures()["containers"]["open_files"])
    number = whole_number(limit)
    good = number is None or number >= least
    yield good, limit, f"systemctl edit docker.service: LimitNOFILE at least {least}; then restart docker"


def foreign_units(case: Case) -> Verdicts:
    """Refuse units and containers made by hand under Rackwright's names, unless `releases.foreign_units` is `aside`."""
    for unit, sentences in case.foreign.items():
        text = " and ".join(sentences)
        yield case.sets_apart, f"{text}{', and will be moved away' if case.sets_apart else ''}", next_step(unit)


SOFTWARE = (
    Check("driver", "stop", driver_answers, "RW3121"),
    Check("driver module", "stop", module, "RW3122"),
    Check("driver version", "stop", driver_minimum, "RW3123"),
    Check("container toolkit", "warn", toolkit, "RW3124"),
    Check("toolkit mode", "stop", toolkit_mode, "RW3125"),
    Check("fabric manager", "stop", fabric_manager, "RW3126"),
    Check("locked memory", "warn", locked_memory, "RW3127"),
    Check("persistence mode", "warn", persistence, "RW3156"),
    Check("cgroup", "warn", cgroups, "RW3155"),
    Check("open files", "warn", open_files, "RW3128"),
    Check("foreign units", "stop", foreign_units, "RW3129"),
    Check("unattended upgrades", "warn", upgrades, "RW3162"),
)
