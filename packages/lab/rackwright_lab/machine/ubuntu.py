"""Ubuntu for lab hosts: its archive, and the keyring that Debian's mmdebstrap needs for it."""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.request
from pathlib import Path

from rackwright_lab.machine.shell import LabError, run

SUITE = "noble"
ARCHIVE = "http://archive.ubuntu.com/ubuntu"
KEYRING = f"{ARCHIVE}/pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb"
KEYRING_SHA256 = "36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8"
PACKAGES = ("apt", "ubuntu-keyring", "cloud-init")
FILES = {
    # What makes the host a host of the lab stays as the lab wrote it.
    "etc/cloud/cloud.cfg.d/90_rackwright-lab.cfg": (
        "datasource_list: [NoCloud, None]\nnetwork: {config: disabled}\nssh_deletekeys: false\nssh_genkeytypes: []\n"
        "users: []\ndisable_root: false\npreserve_hostname: true\nmanage_etc_hosts: false\n"
        "apt: {preserve_sources_list: true}\n"
    ),
}
SEED = "/var/lib/cloud/seed/nocloud"
"""Where cloud-init looks for a first boot's user-data and meta-data."""
INSIDE = "usr/share/keyrings/ubuntu-archive-keyring.gpg"


def sources_list() -> str:
    """Return the sources.list of an Ubuntu host."""
    pockets = (SUITE, f"{SUITE}-updates", f"{SUITE}-security")
    return "".join(f"deb {ARCHIVE} {pocket} main universe\n" for pocket in pockets)


def keyring(cache: Path) -> Path:
    """Return the archive's keyring, fetched once and checked. Raises LabError when it cannot be had."""
    folder = cache / "ubuntu-keyring"
    if not (folder / INSIDE).exists():
        folder.mkdir(parents=True, exist_ok=True)
        package = folder / "keyring.deb"
        package.write_bytes(_fetched())
        run("dpkg-deb", "--extract", package, folder)
    return folder / INSIDE


def _fetched() -> bytes:
    try:
        with urllib.request.urlopen(KEYRING, timeout=60) as answer:
            data: bytes = answer.read()
    except (urllib.error.URLError, OSError) as error:
        raise LabError(f"{KEYRING} cannot be fetched, and an Ubuntu host needs it: {error}") from None
    if hashlib.sha256(data).hexdigest() != KEYRING_SHA256:
        raise LabError(f"{KEYRING} is not the expected file: something on the way changes it")
    return data
