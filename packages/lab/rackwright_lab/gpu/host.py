"""The GPUs of this machine, handed to lab hosts as they are: devices, driver files, nvidia-smi.

A host gets the device nodes bound in at boot, and the driver's files under DRIVER, where Google's and other clouds'
machines have them too. The lab's runtime `nvidia` hands both on to containers by what `write_common` wrote down.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackwright.messages import counted
from rackwright_lab.machine.shell import LabError, run

DRIVER = "usr/local/nvidia"
"""The path of the driver's files on a lab host; containers get them at the same path."""
GRANTS = "usr/lib/rackwright-lab/host-gpus.json"
"""What the lab's container runtime adds to a container: each GPU with its device, what all need, and the mounts."""
LIBRARY = "libnvidia-ml.so.1"
FOLDERS = ("/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")
PROGRAMS = (
    "nvidia-smi",
    "nvidia-debugdump",
    "nvidia-persistenced",
    "nvidia-cuda-mps-control",
    "nvidia-cuda-mps-server",
)
CONTROL = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset", "nvidia-caps/*")
UNIT = "rackwright-lab-gpu.service"
UNIT_TEXT = """\
[Unit]
Description=Let programs find the NVIDIA driver's libraries
DefaultDependencies=no
After=local-fs.target
Before=sysinit.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/sbin/ldconfig

[Install]
WantedBy=sysinit.target
"""
OWN_PROC = "usr/lib/rackwright-lab/driver-nvidia"
"""What a host with some of the machine's GPUs has at /proc/driver/nvidia, as NVIDIA's toolkit does in containers."""
OWN_UNIT_TEXT = f"[Service]\nExecStart=/bin/mount --bind /{OWN_PROC} /proc/driver/nvidia\n"


@dataclass(frozen=True)
class HostGpus:
    """What this machine has: its driver's version and files, and the device of each GPU by its UUID."""

    version: str
    libraries: tuple[Path, ...]
    programs: tuple[Path, ...]
    gpus: tuple[tuple[str, Path], ...]
    control: tuple[Path, ...]


def share(gpus: Sequence[Path], hosts: int) -> list[tuple[Path, ...]]:
    """Return the device nodes of each host's GPUs, in order and equally many; one host gets all of them.

    Raises LabError when they do not go evenly onto the hosts.
    """
    each, remainder = divmod(len(gpus), hosts)
    if not each or remainder:
        raise LabError(
            f"{counted(len(gpus), 'GPU')} of this machine cannot be shared evenly among {counted(hosts, 'host')}: "
            f"--hosts takes {' or '.join(str(n) for n in range(1, len(gpus) + 1) if len(gpus) % n == 0)}"
        )
    return [tuple(gpus[at * each : (at + 1) * each]) for at in range(hosts)]


def devices(dev: Path = Path("/dev")) -> tuple[Path, ...]:
    """Return the device nodes of NVIDIA's driver, GPUs first. Raises LabError when there is no GPU."""
    found = sorted((path for path in dev.glob("nvidia*") if re.fullmatch(r"nvidia\d+", path.name)), key=_number)
    if not found:
        raise LabError(
            f"this machine has no NVIDIA GPU that works: there is no {dev}/nvidia0. "
            "Look at: nvidia-smi -L. Without GPUs, leave out --gpus host: the hosts then pose as machines with some"
        )
    return (*found, *(path for name in CONTROL for path in sorted(dev.glob(name))))


def _number(path: Path) -> int:
    return int(path.name.removeprefix("nvidia"))


def find(
    dev: Path = Path("/dev"), proc: Path = Path("/proc/driver/nvidia"), folders: Sequence[str] = FOLDERS
) -> HostGpus:
    """Return this machine's GPUs and driver. Raises LabError, naming the missing part, when they cannot be shared."""
    nodes = devices(dev)
    folder = next((Path(name) for name in folders if Path(name, LIBRARY).exists()), None)
    if folder is None:
        raise LabError(f"this machine has NVIDIA GPUs, but no {LIBRARY} in {' '.join(folders)}: install its driver")
    version = (folder / LIBRARY).resolve().name.partition(".so.")[2]
    gpus = tuple((uuid, dev / f"nvidia{minor}") for uuid, minor in _uuids(proc) if dev / f"nvidia{minor}" in nodes)
    if not gpus:
        raise LabError(f"{proc}/gpus names no GPU that has a device here: look at nvidia-smi -L")
    files = tuple(path for path in sorted(folder.iterdir()) if path.resolve().name.endswith(f".so.{version}"))
    control = tuple(path for path in nodes if path not in [device for _, device in gpus] and not _is_gpu(path))
    return HostGpus(version, files, _programs(folder), gpus, control)


def _is_gpu(path: Path) -> bool:
    return re.fullmatch(r"nvidia\d+", path.name) is not None


def _uuids(proc: Path) -> list[tuple[str, str]]:
    readings = [_information(path) for path in sorted(proc.glob("gpus/*/information"))]
    return [(one["GPU UUID"], one["Device Minor"]) for one in readings]


def _information(path: Path) -> dict[str, str]:
    pairs = (row.split(":", 1) for row in path.read_text().splitlines() if ":" in row)
    return {key: value.strip() for key, value in pairs}


def _programs(libraries: Path) -> tuple[Path, ...]:
    path = f"{libraries.parent / 'bin'}:{os.environ.get('PATH', '')}:/usr/bin"
    found = [Path(program) for name in PROGRAMS if (program := shutil.which(name, path=path))]
    if not found or found[0].name != PROGRAMS[0]:
        raise LabError(
            f"this machine has NVIDIA's libraries in {libraries}, but no nvidia-smi: install the whole driver"
        )
    return tuple(found)


def write_common(root: Path, host: HostGpus) -> None:
    """Write what all hosts of the lab share into their layer: the driver's files, and what containers are granted."""
    libraries, programs = root / DRIVER / "lib64", root / DRIVER / "bin"
    for folder, files in ((libraries, host.libraries), (programs, host.programs)):
        folder.mkdir(parents=True)
        for path in files:
            shutil.copy2(path, folder / path.name, follow_symlinks=False)
    (root / "usr/bin").mkdir(parents=True, exist_ok=True)
    (root / "usr/bin/nvidia-smi").symlink_to(f"/{DRIVER}/bin/nvidia-smi")
    _write(root / "etc/ld.so.conf.d/nvidia.conf", f"/{DRIVER}/lib64\n")
    _write(root / f"etc/systemd/system/{UNIT}", UNIT_TEXT)
    wants = root / "etc/systemd/system/sysinit.target.wants"
    wants.mkdir(parents=True, exist_ok=True)
    (wants / UNIT).symlink_to(f"/etc/systemd/system/{UNIT}")
    _write(root / GRANTS, json.dumps(grants(host), indent=1) + "\n")


def write_own(root: Path, nodes: Sequence[Path], proc: Path = Path("/proc/driver/nvidia")) -> None:
    """Let a host that has some of the machine's GPUs see only those in /proc/driver/nvidia. nodes: its device nodes."""
    minors = {path.name.removeprefix("nvidia") for path in nodes if _is_gpu(path)}
    folder = root / OWN_PROC
    _write(folder / "version", (proc / "version").read_text())
    # NVIDIA's libraries would make the missing nodes themselves.
    params = (proc / "params").read_text()
    _write(folder / "params", re.sub(r"(?m)^ModifyDeviceFiles: .*$", "ModifyDeviceFiles: 0", params))
    for file in sorted(proc.glob("gpus/*/information")):
        if _information(file)["Device Minor"] in minors:
            _write(folder / file.relative_to(proc), file.read_text())
    _write(root / f"etc/systemd/system/{UNIT}.d/own.conf", OWN_UNIT_TEXT)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def grants(host: HostGpus) -> dict[str, Any]:
    """Return the container runtime's file: the device of each GPU by UUID, the devices for all, and the mounts."""
    mounts = [_bind(f"/{DRIVER}", f"/{DRIVER}"), _bind(f"/{DRIVER}/bin/nvidia-smi", "/usr/bin/nvidia-smi")]
    return {
        "gpus": {uuid: _device(path) for uuid, path in host.gpus},
        "control": [_device(path) for path in host.control],
        "mounts": mounts,
    }


def _bind(source: str, target: str) -> dict[str, Any]:
    return {"destination": target, "type": "bind", "source": source, "options": ["rbind", "ro", "nosuid"]}


def _device(path: Path) -> dict[str, Any]:
    status = path.stat()
    numbers = {"major": os.major(status.st_rdev), "minor": os.minor(status.st_rdev)}
    return {"path": str(path), "type": "c", **numbers, "fileMode": stat.S_IMODE(status.st_mode), "uid": 0, "gid": 0}


def described(host: HostGpus) -> str:
    """Return one line for the user: which GPUs, which driver."""
    smi = host.programs[0]
    names = run(
        smi, "--query-gpu=name", "--format=csv,noheader", env={"LD_LIBRARY_PATH": str(host.libraries[0].parent)}
    ).stdout.split("\n")
    return f"{len(host.gpus)} GPU(s) of this machine, {names[0].strip()}, driver {host.version}"
