"""NVIDIA's driver in Ubuntu's own archive: its names, relations and versions, for Ubuntu hosts of the lab.

The libraries have the driver's version. The modules for a kernel, which Ubuntu signs, have the kernel's, and need the
files of one driver. Names and relations as packages.ubuntu.com shows them for 24.04.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from rackwright_lab.gpu.pose import FILES
from rackwright_lab.servers import aptrepo
from rackwright_lab.servers.aptrepo import Control
from rackwright_lab.servers.driver import FABRIC, LIBRARIES, MANAGER_UNIT, MODPROBE, MODULE, SMI

HOST, FOLDER = "archive.ubuntu.com", "ubuntu/restricted"
SOURCE = "deb [trusted=yes] https://mirror.lab.example/ubuntu/restricted ./"
BRANCH, KERNEL, ABI = "580", "6.8.0-60-generic", "6.8.0-60.63"
REVISION = "0ubuntu0.24.04.1"
MAINTAINER = "Rackwright lab stand-in for Ubuntu <lab@localhost>"
Files = dict[str, str]


def provide(folder: Path, versions: Sequence[str]) -> None:
    """Write the repository of these drivers, the oldest first."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rackwright-ubuntu-driver.") as work:
        for number, version in enumerate(versions, 1):
            for control, files in _packages(version, number):
                root = Path(work) / f"{control.name}-{version}"
                _write(root, files)
                aptrepo.package(root, folder, control, MAINTAINER)
                shutil.rmtree(root)
    aptrepo.index(folder, ".", ".")


def _write(root: Path, files: Files) -> None:
    root.mkdir()
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
        (root / path).chmod(0o755 if "bin/" in path else 0o644)


def _packages(version: str, number: int) -> Iterator[tuple[Control, Files]]:
    exact, server = f"(= {version}-{REVISION})", f"{BRANCH}-server"
    library, common = f"libnvidia-compute-{server}", f"nvidia-kernel-common-{server}"
    smi, unit = (FILES / "nvidia-smi").read_text(), (FILES / "nvidia-fabricmanager.service").read_text()
    manager = {"usr/bin/nv-fabricmanager": FABRIC.format(version=version), MANAGER_UNIT: unit}
    yield _of(library, version, scripts={"postinst": LIBRARIES.format(version=version)}), {}
    yield _of(common, version, Provides=f"{common}-{version}"), MODPROBE
    yield _of(f"nvidia-utils-{server}", version, Depends=f"{library} {exact}"), {SMI: smi}
    headless = f"{library} {exact}, {common} {exact}"
    yield _of(f"nvidia-headless-no-dkms-{server}-open", version, Depends=headless), {}
    yield _of(f"nvidia-fabricmanager-{BRANCH}", version, Depends=f"{common}-{version}"), manager
    modules, release = f"linux-modules-nvidia-{server}-open", f"{ABI}+{number}"
    scripts = {"postinst": MODULE.format(module=version)}
    yield Control(f"{modules}-{KERNEL}", release, {"Depends": f"{common} {exact}"}, scripts), {}
    yield Control(f"{modules}-generic", release, {"Depends": f"{modules}-{KERNEL} (= {release})"}), {}


def _of(name: str, version: str, scripts: Files | None = None, **fields: str) -> Control:
    return Control(name, f"{version}-{REVISION}", fields, scripts or {})
