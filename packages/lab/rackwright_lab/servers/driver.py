"""NVIDIA's driver as an apt repository: names, relations and addresses of the real one, signed by the lab.

The stand-in's libraries change when they are installed, and its kernel module at the next boot, as the real one's do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rackwright_lab.gpu.models import DRIVER
from rackwright_lab.gpu.pose import FILES
from rackwright_lab.servers import aptrepo
from rackwright_lab.servers.aptrepo import Control

HOST = "developer.download.nvidia.com"
FOLDER = "compute/cuda/repos/debian12/x86_64"
KEY = f"{FOLDER}/3bf863cc.pub"
KEY_NAME = "Rackwright lab stand-in for cudatools <lab@localhost>"
OLD, NEW, BROKEN, ALONE = DRIVER, "580.178.04", "580.199.99", "595.71.05"
"""The driver that hosts pose with, a newer one, one whose module does not load, and one without its fabric manager."""
WITH_KERNEL, KERNEL = "590.48.01", "99.1.0-1-amd64"
"""A driver that comes with another kernel, and that kernel."""
VERSIONS = (OLD, NEW, BROKEN, ALONE, WITH_KERNEL)
SUBNET_MANAGER = "nvlsm", "2025.10.12"
"""NVLink 5's, with versions of its own."""
DIAGNOSTICS = "infiniband-diags", "44.0"
"""Debian's, by which the fabric manager asks for switches: here, since lab hosts' short lists of Debian lack it."""
FORMAT = 2
"""Raise it when the making of the packages changes in a way that they do not show."""
FABRIC = """\
#!/bin/sh
[ "$1" != --version ] || {{ echo "Fabric Manager version is : {version}"; exit 0; }}
exec sleep infinity
"""
LIBRARIES = """\
#!/bin/sh
[ "$1" != configure ] || sed -i 's/^DRIVER=.*/DRIVER="{version}"/' /etc/rackwright-lab/gpu.conf
"""
IMEX = """\
#!/bin/sh
[ "$1" = configure ] || exit 0
systemctl daemon-reload
systemctl -q is-enabled nvidia-imex 2>/dev/null || systemctl -q enable --now nvidia-imex
"""
LOCK = """\
Package: *nvidia* libcuda1
Pin: version {version}-*
Pin-Priority: 1001
"""
MODULE = """\
#!/bin/sh
[ "$1" = configure ] || exit 0
echo {module} >/usr/lib/rackwright-lab/module-at-boot
rm -f /usr/lib/rackwright-lab/module-kernel
[ ! -d /run/systemd/system ] || systemctl enable --quiet rackwright-lab-gpu.service
"""
FOR_KERNEL = f"echo {KERNEL} >/usr/lib/rackwright-lab/module-kernel\n"
"""The end of a module that was made for one kernel alone: no other kernel loads it."""
MODPROBE = {
    "etc/modprobe.d/nvidia-lab.conf": (
        "install nvidia rm -f /run/rackwright-lab/posed; /usr/lib/rackwright-lab/pose; test -e /sys/module/nvidia\n"
    )
}
"""What loads the module: modprobe does nothing while one is loaded."""
UMAD = {"etc/modprobe.d/ib-umad-lab.conf": "install ib_umad mkdir -p /run/rackwright-lab/ib_umad\n"}
"""Files that load the module by which NVLink 5's subnet manager reaches its switches."""
SMI, MANAGER_UNIT = "usr/bin/nvidia-smi", "usr/lib/systemd/system/nvidia-fabricmanager.service"


@dataclass(frozen=True)
class Made:
    """One package: its dependencies, its files (path to text), and the script that runs when it is installed."""

    depends: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    postinst: str = ""
    alone: str = ""
    """A name that it provides, beside which no other package may provide it."""


def packages(version: str) -> dict[str, Made]:
    """Return the packages of one driver, by name."""
    exact = f"(= {version}-1)"
    smi, unit = (FILES / "nvidia-smi").read_text(), (FILES / "nvidia-fabricmanager.service").read_text()
    module = "none" if version == BROKEN else version
    found = {
        "libcuda1": Made(postinst=LIBRARIES.format(version=version)),
        "nvidia-kernel-open-dkms": Made(files=MODPROBE, postinst=MODULE.format(module=module)),
        "nvidia-open": Made(f"nvidia-driver-cuda {exact}"),
        "nvidia-driver-cuda": Made(f"libcuda1 {exact}, nvidia-kernel-open-dkms {exact}", {SMI: smi}),
        "nvidia-imex": Made(files=_imex(version), postinst=IMEX),
    }
    if version == WITH_KERNEL:
        image = f"linux-image-{KERNEL}"
        found["nvidia-kernel-open-dkms"] = Made(image, MODPROBE, MODULE.format(module=module) + FOR_KERNEL)
        found[image] = Made(files={f"boot/vmlinuz-{KERNEL}": ""}, postinst="#!/bin/sh\nupdate-grub\n")
    name = "nvidia-driver-pinning"
    lock = Made(alone=name, files={f"etc/apt/preferences.d/{name}-{version}": LOCK.format(version=version)})
    found |= {f"{name}-{version}": lock}
    fabric = Made(files={"usr/bin/nv-fabricmanager": FABRIC.format(version=version), MANAGER_UNIT: unit})
    return found if version == ALONE else {**found, "nvidia-fabricmanager": fabric}


def _imex(version: str) -> dict[str, str]:
    """Return the files of IMEX: its daemon says the version that it was started with."""
    programs = {f"usr/bin/{name}": (FILES / name).read_text() for name in ("nvidia-imex", "nvidia-imex-ctl")}
    texts = {**programs, "usr/lib/systemd/system/nvidia-imex.service": (FILES / "nvidia-imex.service").read_text()}
    return {path: text.replace("VERSION", version) for path, text in texts.items()}


def repository(cache: Path) -> Path:
    """Return the repository's tree, as https://developer.download.nvidia.com has it; made once for its contents."""
    text = repr([list(_all()), FORMAT])
    return aptrepo.built_once(cache / f"driver-apt-{hashlib.sha256(text.encode()).hexdigest()[:12]}", _build)


def _build(tree: Path, work: Path) -> None:
    pool = tree / FOLDER
    pool.mkdir(parents=True)
    for version, name, made in _all():
        root = work / f"{name}-{version}"
        root.mkdir()
        for path, text in made.files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
            (root / path).chmod(0o755 if "bin/" in path else 0o644)
        scripts = {"postinst": made.postinst} if made.postinst else {}
        fields = {"Depends": made.depends, "Conflicts": made.alone, "Provides": made.alone}
        aptrepo.package(root, pool, Control(name, f"{version}-1", fields, scripts), KEY_NAME)
    aptrepo.index(pool, ".", ".")
    aptrepo.sign(pool, KEY_NAME, ("Origin: NVIDIA", "Label: lab"), tree / KEY, work / "gnupg")


def _all() -> Iterator[tuple[str, str, Made]]:
    for version in VERSIONS:
        for name, made in packages(version).items():
            yield version, name, made
    name, version = SUBNET_MANAGER
    yield version, name, Made(files=UMAD)
    name, version = DIAGNOSTICS
    yield version, name, Made()


def install_line(version: str, *others: str, fabric_manager: bool = True) -> str:
    """Return the shell line by which an operator would have installed a driver; its repository does not stay."""
    list_file = "/etc/apt/sources.list.d/by-hand.list"
    names = ["nvidia-driver-cuda", "libcuda1", "nvidia-kernel-open-dkms", *others]
    names += ["nvidia-fabricmanager"] * fabric_manager
    wanted = " ".join(f"{name}={version}-1" for name in names)
    return (
        f"echo 'deb [trusted=yes] https://{HOST}/{FOLDER}/ /' >{list_file} && apt-get -q update && "
        f"apt-get -q -y install {wanted} && rm {list_file} && apt-get -q update && "
        "mkdir -p /lib/modules/$(uname -r)/build"  # the kernel's headers, which modules are built with
    )
