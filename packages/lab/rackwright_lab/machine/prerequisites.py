"""What the lab needs on this machine: checked, and installed where this is Debian or Ubuntu."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rackwright_lab.machine import locks
from rackwright_lab.machine.progress import Progress
from rackwright_lab.machine.shell import LabError, run

PACKAGE_OF = {
    "mmdebstrap": "mmdebstrap",
    "systemd-nspawn": "systemd-container",
    "ip": "iproute2",
    "tc": "iproute2",
    "iptables": "iptables",
    "docker-registry": "docker-registry",
    "skopeo": "skopeo",
    "dnsmasq": "dnsmasq-base",
    "htpasswd": "apache2-utils",
    "ssh-keygen": "openssh-client",
    "openssl": "openssl",
    "nsenter": "util-linux",
    "apt-ftparchive": "apt-utils",
    "dpkg-deb": "dpkg",
    "gpg": "gnupg",
    "tinyproxy": "tinyproxy-bin",
    # Serves a share that squashes root.
    "bindfs": "bindfs",
    # Sees from outside every program that a host starts, with its arguments.
    "strace": "strace",
}
# Debian starts these for the whole machine; a lab starts its own.
UNWANTED_UNITS = ("docker-registry.service",)
POLICY = Path("/usr/sbin/policy-rc.d")
REFUSE_STARTS = "#!/bin/sh\nexit 101\n"


def ensure(progress: Progress) -> None:
    """Install what is missing. Raises LabError, with what and how, where that cannot be done."""
    refuse_foreign_systems()
    if not missing_packages():
        return
    # Labs begin side by side, and apt does not wait for its lock on the package lists.
    with locks.only_one("packages"):
        _install_missing(progress)


def _install_missing(progress: Progress) -> None:
    missing = missing_packages()
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise LabError(f"the lab needs {', '.join(missing)}; install them with this machine's package manager")
    with progress.step(f"installing {len(missing)} Debian packages on this machine: {' '.join(missing)}"):
        _install(missing)


def refuse_foreign_systems() -> None:
    """Raise LabError unless this is Linux and we are root."""
    if platform.system() != "Linux":
        raise LabError(f"the lab boots Linux hosts and needs Linux; this is {platform.system()}. Use a Linux machine")
    if os.geteuid() != 0:
        raise LabError("the lab boots real hosts and needs root. Run: sudo rackwright lab up")


def missing_packages() -> list[str]:
    """Return the Debian packages whose commands are missing here."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return sorted({package for command, package in PACKAGE_OF.items() if not shutil.which(command, path=path)})


def _install(packages: list[str]) -> None:
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    run("apt-get", "update", "-q", env=quiet)
    with _no_service_starts():
        wait = ("-o", "DPkg::Lock::Timeout=300")
        run("apt-get", "install", "-y", "-q", "--no-install-recommends", *wait, *packages, env=quiet)
    for unit in UNWANTED_UNITS:
        run("systemctl", "disable", unit, check=False)


@contextmanager
def _no_service_starts() -> Iterator[None]:
    if POLICY.exists():
        yield
        return
    POLICY.write_text(REFUSE_STARTS)
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()
