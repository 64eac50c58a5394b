"""A host that looks like a machine with NVIDIA GPUs, and the switches that make it look broken."""

from __future__ import annotations

import hashlib
import shlex
import shutil
import subprocess
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from rackwright_lab.gpu.models import DRIVER, FIXTURES, MODELS, gpu_xml, model_settings, table_frame

FILES = Path(__file__).parent / "files"
DCGMI = "usr/lib/rackwright-lab/dcgmi"
"""The stand-in for DCGM's command; no host has it in its PATH before `install_dcgm`."""
MODEL = "b200"
MOST_GPUS = 8
UNITS = ("rackwright-lab-gpu.service", "nvidia-fabricmanager.service")
NVRM = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {module}  Release Build  (dvs-builder@lab)\n"
    "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14+deb12u1)\n"
)


@dataclass(frozen=True)
class Switches:
    """How a host's GPUs look. `module` other than `driver` is a kernel module that does not match its library."""

    gpus: int = MOST_GPUS
    driver: str = DRIVER
    module: str = DRIVER
    mig: str = "Disabled"
    faulty_gpu: int = 0
    ecc_uncorrected: int = 0
    ecc_corrected: int = 0
    remap_pending: str = "No"
    remap_failure: str = "No"
    fabric_state: str = "Completed"
    fabric_status: str = "Success"
    slowed: str = "0x0000000000000000"
    """The bits of what slows all of them, as --query-gpu has it; the whole reading (-q) knows nothing of it."""


def write_common(root: Path) -> None:
    """Write what all hosts share into a layer: nvidia-smi, the fabric manager, the pose at boot."""
    _install(root, "nvidia-smi", "usr/bin/nvidia-smi")
    _install(root, "nv-fabricmanager", "usr/bin/nv-fabricmanager")
    _install(root, "pose", "usr/lib/rackwright-lab/pose")
    _install(root, "dcgmi", DCGMI)
    for unit in UNITS:
        _install(root, unit, f"etc/systemd/system/{unit}", mode=0o644)
    for unit, target in zip(UNITS, ("sysinit", "multi-user"), strict=True):
        wants = root / f"etc/systemd/system/{target}.target.wants"
        wants.mkdir(parents=True, exist_ok=True)
        (wants / unit).symlink_to(f"/etc/systemd/system/{unit}")
    library = root / "usr/lib/rackwright-lab/gpu"
    library.mkdir(parents=True)
    (library / "table").write_text(table_frame())
    shutil.copy(FIXTURES / "topo.txt", library / "topo")


def _install(root: Path, name: str, path: str, mode: int = 0o755) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text((FILES / name).read_text().replace("@DRIVER@", DRIVER))
    target.chmod(mode)


def write_host(root: Path, name: str, model: str = MODEL) -> None:
    """Write what is one host's own: its model, its GPUs with their UUIDs, and switches that say all is well."""
    library = root / "usr/lib/rackwright-lab/gpu"
    (library / "gpu.xml").write_text(gpu_xml(MODELS[model]))
    (library / "model").write_text(model_settings(MODELS[model]))
    rows = (f"{n} {uuid(name, n)} 00000000:{0x1B + 8 * n:02X}:00.0 {serial(name, n)}\n" for n in range(MOST_GPUS))
    (library / "gpus").write_text("".join(rows))
    well = Switches()
    if not MODELS[model].fabric:
        well = replace(well, fabric_state="N/A", fabric_status="N/A")
    write_switches(root, well)


def uuid(host: str, index: int) -> str:
    """Return the UUID of one GPU of a host: always the same one."""
    text = hashlib.sha256(f"{host}/{index}".encode()).hexdigest()
    return f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:32]}"


def serial(host: str, index: int) -> str:
    """Return the serial number of one GPU of a host: always the same one."""
    return str(1650000000000 + int(hashlib.sha256(f"serial {host}/{index}".encode()).hexdigest()[:8], 16))


def write_switches(root: Path, switches: Switches) -> None:
    """Write the switches of a host; nvidia-smi reads them each time it runs."""
    lines = "".join(f'{name.upper()}="{value}"\n' for name, value in asdict(switches).items())
    for path, text in (
        ("etc/rackwright-lab/gpu.conf", lines),
        ("usr/lib/rackwright-lab/proc-driver/nvidia/version", NVRM.format(module=switches.module)),
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    _write_information(root, switches)


# Real: an H200's, driver 580.159.04. The folder has the GPU's bus address as its name.
INFORMATION = (
    "Model: \t\t {product}\nIRQ:   \t\t 41\nGPU UUID: \t {uuid}\nVideo BIOS: \t 96.00.a5.00.1a\nBus Type: \t PCIe\n"
    "DMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff\nBus Location: \t {bus}\nDevice Minor: \t {index}\n"
    "GPU Firmware: \t {driver}\nGPU Excluded:\t No\n"
)


def _write_information(root: Path, switches: Switches) -> None:
    """Write what the kernel reports of each GPU in /proc/driver/nvidia/gpus."""
    library = root / "usr/lib/rackwright-lab"
    folder = library / "proc-driver/nvidia/gpus"
    shutil.rmtree(folder, ignore_errors=True)
    product = shlex.split((library / "gpu/model").read_text().partition("NAME=")[2])[0]
    for row in (library / "gpu/gpus").read_text().splitlines()[: switches.gpus]:
        index, uuid_, bus, _ = row.split()
        bus = bus.removeprefix("0000").lower()
        text = INFORMATION.format(product=product, uuid=uuid_, bus=bus, index=index, driver=switches.driver)
        (folder / bus).mkdir(parents=True)
        (folder / bus / "information").write_text(text)


class GpuHost(Protocol):
    """What its GPUs need of a host."""

    @property
    def name(self) -> str:
        """Its name, by which its GPUs have their UUIDs."""

    @property
    def root(self) -> Path:
        """Its root file system as this machine sees it."""

    @property
    def is_on(self) -> bool:
        """Whether it runs."""

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a shell line in it."""


@dataclass(frozen=True)
class Gpus:
    """The GPUs of one host, as `host.gpu`."""

    host: GpuHost

    def set(self, **switches: Any) -> None:
        """Make the GPUs look so (see Switches); what is not named looks well again. Takes effect at once."""
        write_switches(self.host.root, Switches(**switches))
        if self.host.is_on:
            self.host.run("/usr/lib/rackwright-lab/pose")

    def swap(self, index: int, spare: str = "spare") -> str:
        """Put another GPU in place of one, as a technician would; returns its UUID. `spare`: its name."""
        rows = self.host.root / "usr/lib/rackwright-lab/gpu/gpus"
        new = uuid(f"{self.host.name}/{spare}", index)
        lines = [row.split() for row in rows.read_text().splitlines()]
        lines[index][1] = new
        rows.write_text("".join(f"{' '.join(words)}\n" for words in lines))
        self.set()
        return new

    def pose_as(self, model: str) -> None:
        """Make them another model: "b200" or "h200"."""
        write_host(self.host.root, self.host.name, model)

    def uuids(self) -> list[str]:
        """Their UUIDs, in order."""
        return [uuid(self.host.name, index) for index in range(MOST_GPUS)]

    def install_dcgm(self, version: str = "4.5.2", takes: int = 1, faults: str = "", error: str = "") -> None:
        """Install DCGM, or let it find other things from now on; faults, error: as the stand-in has them."""
        values = {"DCGM": version, "TAKES": takes, "FAULTS": faults, "ERROR": error}
        text = "".join(f"{name}={shlex.quote(str(value))}\n" for name, value in values.items())
        (self.host.root / "etc/rackwright-lab/dcgm.conf").write_text(text)
        link = self.host.root / "usr/bin/dcgmi"
        link.unlink(missing_ok=True)
        link.symlink_to(f"/{DCGMI}")

    def remove_dcgm(self) -> None:
        """Take DCGM away again, as on a machine without NVIDIA's package."""
        (self.host.root / "usr/bin/dcgmi").unlink(missing_ok=True)

    def remove_driver(self) -> None:
        """Take the driver away, as on a machine where it was never installed; NVIDIA's packages bring it again."""
        self.host.run(
            f"systemctl disable --now {' '.join(UNITS)}; umount /proc/driver; "
            "rm -rf /usr/bin/nvidia-smi /usr/bin/nv-fabricmanager /etc/systemd/system/nvidia-fabricmanager.service "
            "/usr/lib/rackwright-lab/module-at-boot /dev/nvidia*; systemctl daemon-reload; "
            "mount -o remount,rw /sys; rm -rf /sys/module/nvidia; mount -o remount,ro /sys"
        )

    def start_foreign_process(self, index: int = 0, memory_mib: int = 4096, user: str = "nobody") -> int:
        """Let another user's process compute on a GPU. Returns its pid on the host."""
        unit = f"stranger-{index}"
        self.host.run(f"systemd-run --quiet --unit={unit} --uid={user} sleep infinity")
        pid = int(self.host.run(f"systemctl show --property=MainPID --value {unit}").stdout)
        self.host.run(
            f"echo {pid} $(cut -d' ' -f22 /proc/{pid}/stat) {memory_mib} {uuid(self.host.name, index)} "
            f"> /run/rackwright-lab/gpu-processes/{unit}"
        )
        return pid

    def stop_foreign_process(self, index: int = 0) -> None:
        """End the process that start_foreign_process began."""
        self.host.run(f"systemctl stop stranger-{index}; rm -f /run/rackwright-lab/gpu-processes/stranger-{index}")
