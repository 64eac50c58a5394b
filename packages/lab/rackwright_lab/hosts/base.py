"""The root file systems that hosts are laid over: made once, cached by a key of their contents."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rackwright_lab.machine import inherited, locks, prerequisites, ubuntu
from rackwright_lab.machine.progress import Progress
from rackwright_lab.machine.shell import run
from rackwright_lab.machine.trees import remove_tree

SUITE = "bookworm"
USER = "ops"
# Raise it when the making of a base changes in a way that its packages and files do not show.
FORMAT = 4

COMMON = (
    "systemd", "systemd-sysv", "dbus", "openssh-server", "sudo", "ca-certificates", "openssl", "iproute2",
    "iputils-ping", "kmod", "procps", "less", "gpgv",
)  # fmt: skip
LIVED_IN = ("docker.io", "iptables", "nftables", "curl", "jq", "rsync", "python3")
# A machine that has none of the lab's programs can run labs from a root with them (scripts/real-gpu).
MACHINE = (*prerequisites.PACKAGE_OF.values(), "python3", "python3-venv", "curl", "jq")
# Of the public certificate authorities none is met in a lab, and every HTTPS client reads all that are there:
# with 140 of them each call takes 20 ms longer, and update-ca-certificates two seconds.
AUTHORITIES = 4
# In the bare base's apt archive, not installed: a host's `apt-get install` unpacks them in seconds.
FETCHED = ("docker.io", "iptables", "nftables", "curl", "jq", "gnupg", "python3", "python3-venv", "rsync")

FILES = {
    "etc/dpkg/dpkg.cfg.d/rackwright-lab": "force-unsafe-io\n",
    "etc/sudoers.d/ops": f"{USER} ALL=(ALL) NOPASSWD: ALL\n",
    "etc/ssh/sshd_config.d/rackwright-lab.conf": (
        "PermitRootLogin no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        "HostKey /etc/ssh/ssh_host_ed25519_key\nLogLevel DEBUG1\nUseDNS no\n"
    ),
    "etc/systemd/system/ssh.service.d/rackwright-lab.conf": "[Service]\nRestart=always\n",
    "etc/systemd/journald.conf.d/rackwright-lab.conf": (
        "[Journal]\nStorage=persistent\nRateLimitIntervalSec=0\nSystemMaxUse=64M\n"
    ),
}


@dataclass(frozen=True)
class Base:
    """One kind of root file system."""

    kind: str
    packages: tuple[str, ...]
    fetched: tuple[str, ...] = ()
    over: str | None = None

    @property
    def suite(self) -> str:
        """The release of Debian or Ubuntu."""
        return ubuntu.SUITE if self.kind == "ubuntu" else SUITE

    @property
    def sources_list(self) -> str:
        """Where its hosts get their packages."""
        return ubuntu.sources_list() if self.kind == "ubuntu" else inherited.sources_list(SUITE)

    @property
    def files(self) -> Mapping[str, str]:
        """Text by path of the files that make it a lab host."""
        return {**FILES, **ubuntu.FILES} if self.kind == "ubuntu" else FILES

    @property
    def key(self) -> str:
        """Names the contents: another package list or file, another key."""
        below = BASES[self.over].key if self.over else ""
        text = json.dumps([FORMAT, self.suite, asdict(self), self.files, below], sort_keys=True)
        return f"{self.kind}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


BASES = {
    "bare": Base("bare", COMMON, FETCHED),
    "lived": Base("lived", LIVED_IN, over="bare"),
    "machine": Base("machine", MACHINE, over="bare"),
    "ubuntu": Base("ubuntu", (*COMMON, *ubuntu.PACKAGES), ("docker.io", "iptables", "nftables", "curl", "jq")),
}
"""A bare Debian, a lived-in one and a machine for labs over it, and a bare Ubuntu."""


# What a package's scripts start, they would start on this machine.
INSTALL_OVER = """
set -e
mount -t overlay -o "lowerdir=$1,upperdir=$2,workdir=$3" base "$4"
mount -t proc proc "$4/proc"
printf '#!/bin/sh\\nexit 101\\n' > "$4/usr/sbin/policy-rc.d"
chmod 755 "$4/usr/sbin/policy-rc.d"
root=$4
shift 4
DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get install -y -q --no-install-recommends "$@"
rm "$root/usr/sbin/policy-rc.d"
"""


def ensure(kind: str, cache: Path, progress: Progress) -> str:
    """Return the layers of a kind's base system as overlay's lowerdir, made now if the cache lacks them."""
    base = BASES[kind]
    folder = cache / "base" / base.key
    folder.parent.mkdir(parents=True, exist_ok=True)
    below = ensure(base.over, cache, progress) if base.over else None
    with locks.only_one(base.key):
        if not folder.exists():
            _make(base, folder, below, progress)
    return f"{folder}:{below}" if below else str(folder)


def with_packages(lower: str, packages: Sequence[str], cache: Path, progress: Progress) -> str:
    """Return the layers of a base system with more packages above, of which no service starts at boot."""
    if not packages:
        return lower
    contents = json.dumps([FORMAT, [Path(layer).name for layer in lower.split(":")], sorted(packages)])
    folder = cache / "base" / f"packages-{hashlib.sha256(contents.encode()).hexdigest()[:12]}"
    with locks.only_one(folder.name):
        if not folder.exists():
            partial = folder.with_suffix(".partial")
            remove_tree(partial)
            with progress.step(f"installing {', '.join(packages)} over the base system (once)"):
                _install_over(packages, partial, lower)
            for wanted in (partial / "etc/systemd/system").glob("*.wants/*"):
                wanted.unlink()
            partial.rename(folder)
    return f"{folder}:{lower}"


def _make(base: Base, folder: Path, below: str | None, progress: Progress) -> None:
    partial = folder.with_suffix(".partial")
    remove_tree(partial)
    if below:
        with progress.step(f"making the {base.kind} base system (packages over the one below, about 10 s, once)"):
            _install_over(base.packages, partial, below)
    else:
        with progress.step(f"making the {base.kind} base system (mmdebstrap, about 25 s, once)"):
            _bootstrap(base, partial)
    partial.rename(folder)


def _install_over(packages: Sequence[str], upper: Path, below: str) -> None:
    with tempfile.TemporaryDirectory(dir=upper.parent, prefix="making.") as work:
        folders = (upper, Path(work, "work"), Path(work, "root"))
        for folder in folders:
            folder.mkdir()
        # The mounts are of a name space of their own and go with it.
        run("unshare", "--mount", "sh", "-c", INSTALL_OVER, "-", below, *folders, *packages)


def _bootstrap(base: Base, root: Path) -> None:
    options = [f"--aptopt={setting}" for setting in inherited.apt_options()]
    options += [f"--keyring={ubuntu.keyring(root.parent.parent)}"] if base.kind == "ubuntu" else []
    run(
        "mmdebstrap", "--mode=root", "--variant=minbase", f"--include={','.join(base.packages)}", *options,
        "--dpkgopt=force-unsafe-io", "--skip=check/empty", base.suite, root, "-",
        stdin=base.sources_list,
    )  # fmt: skip
    _furnish(root, base.files)
    _fetch(root, base)
    for key in (root / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    (root / "etc/machine-id").write_text("")


def _furnish(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    (root / "etc/sudoers.d/ops").chmod(0o440)
    _trust_few(root)
    run("chroot", root, "useradd", "--create-home", "--shell", "/bin/bash", USER)
    run("chroot", root, "systemctl", "enable", "systemd-networkd.service")


def _trust_few(root: Path) -> None:
    chosen = root / "etc/ca-certificates.conf"
    names = [row for row in chosen.read_text().splitlines() if row.endswith(".crt")]
    chosen.write_text("".join(f"{name}\n" for name in names[:AUTHORITIES]))
    run("chroot", root, "update-ca-certificates", "--fresh")


def _fetch(root: Path, base: Base) -> None:
    write_apt(root, base.kind)
    (root / "etc/resolv.conf").write_text(inherited.resolv_conf())
    run("chroot", root, "apt-get", "update", "-q")
    run("chroot", root, "apt-get", "install", "-y", "-q", "--download-only", *base.fetched)


def write_apt(root: Path, kind: str) -> None:
    """Give a root file system of a kind its sources, and the apt settings of this machine."""
    (root / "etc/apt/sources.list").write_text(BASES[kind].sources_list)
    (root / "etc/apt/apt.conf.d/90machine").write_text("".join(f"{setting}\n" for setting in inherited.apt_options()))
