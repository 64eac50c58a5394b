"""What makes a laid disk a particular host: its name, address, keys, trust, and way out."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from rackwright_lab.gpu import host as host_gpus
from rackwright_lab.gpu import pose
from rackwright_lab.hosts import base, lived
from rackwright_lab.machine import inherited
from rackwright_lab.machine.paths import Paths
from rackwright_lab.machine.shell import run

NETWORK = """[Match]
Name=host0

[Network]
Address={address}/24
Address={address6}/64
Gateway={gateway}
IPv6AcceptRA=no

[Link]
MTUBytes={mtu}
"""

NO_DISKS = ("cryptsetup", "debug", "gpt-auto", "hibernate-resume", "integritysetup", "system-update", "veritysetup")
"""systemd's generators for disks and boot menus, which no host of the lab has.

Each daemon-reload runs them all: of a test run's programs one in ten was one of these.
"""


def common(
    root: Path,
    paths: Paths,
    kind: str,
    authority: Path,
    names: Mapping[str, str],
    gateway: str,
    lower: Path,
    gpus: host_gpus.HostGpus | None = None,
) -> None:
    """Write the layer that all hosts of one kind share: trust, names of the lab's servers, apt, login key.

    Args: the layer's folder, the lab, the kind, the CA certificate, host name to address, its name server, the base
    system below, and this machine's own GPUs where the hosts get those and do not pose.
    """
    for folder in ("etc/apt/apt.conf.d", "etc/ssl/certs", "usr/local/share/ca-certificates"):
        _same_folder(root, lower, folder)
    base.write_apt(root, kind)
    (root / "etc/resolv.conf").write_text(f"nameserver {gateway}\n")
    _trust(root, lower, [authority.read_text(), *inherited.own_authorities()])
    hosts = [f"{address}\t{name}" for name, address in names.items()]
    (root / "etc/hosts").write_text("\n".join(["127.0.0.1\tlocalhost", "::1\tlocalhost ip6-localhost", *hosts]) + "\n")
    _login(root, lower, paths.user_key.with_suffix(".pub"))
    _mask_generators(root)
    if gpus is None:
        pose.write_common(root)
    else:
        host_gpus.write_common(root, gpus)


def _same_folder(root: Path, lower: Path, name: str) -> Path:
    """Make a folder of an upper layer with owner and mode of the one below: the upper one's count."""
    folder = root
    for part in Path(name).parts:
        folder = folder / part
        if not folder.exists():
            folder.mkdir(parents=True)
            below = (lower / folder.relative_to(root)).stat()
            folder.chmod(below.st_mode & 0o7777)
            shutil.chown(folder, below.st_uid, below.st_gid)
    return folder


def _mask_generators(root: Path) -> None:
    """As systemd.generator(7) says: a link to /dev/null of the same name, in a folder that comes before."""
    folder = root / "etc/systemd/system-generators"
    folder.mkdir(parents=True, exist_ok=True)
    for name in NO_DISKS:
        (folder / f"systemd-{name}-generator").symlink_to("/dev/null")


def _trust(root: Path, lower: Path, authorities: list[str]) -> None:
    """Write what update-ca-certificates makes of these files, without two seconds of work a host."""
    certs = "etc/ssl/certs"
    bundle = (lower / certs / "ca-certificates.crt").read_text() + "".join(authorities)
    (root / certs / "ca-certificates.crt").write_text(bundle)
    for number, pem in enumerate(authorities):
        name = f"lab-authority-{number}"
        source = root / "usr/local/share/ca-certificates" / f"{name}.crt"
        source.write_text(pem)
        (root / certs / f"{name}.pem").symlink_to(f"/usr/local/share/ca-certificates/{name}.crt")
        label = run("openssl", "x509", "-noout", "-hash", "-in", source).stdout.strip()
        link = root / certs / f"{label}.0"
        if not link.is_symlink():
            link.symlink_to(f"{name}.pem")


def _login(root: Path, lower: Path, public_key: Path) -> None:
    home = _same_folder(root, lower, f"home/{base.USER}")
    folder = home / ".ssh"
    folder.mkdir(mode=0o700, exist_ok=True)
    shutil.copy(public_key, folder / "authorized_keys")
    owner = home.stat()
    for path in (folder, folder / "authorized_keys"):
        shutil.chown(path, owner.st_uid, owner.st_gid)
    (folder / "authorized_keys").chmod(0o600)


class Dressed(Protocol):
    """What a host's own files say of it."""

    @property
    def lab(self) -> Paths:
        """Where its lab keeps things."""

    @property
    def name(self) -> str:
        """Its host name."""

    @property
    def kind(self) -> str:
        """Its kind: "bare", "lived" or "ubuntu"."""

    @property
    def address(self) -> str:
        """Its IPv4 address."""

    @property
    def address6(self) -> str:
        """Its IPv6 address."""

    @property
    def root(self) -> Path:
        """Its root file system as this machine sees it."""

    @property
    def host_key(self) -> Path:
        """Its private host key."""

    @property
    def devices(self) -> tuple[Path, ...]:
        """Device nodes of real GPUs; none: it poses."""

    @property
    def denied(self) -> tuple[Path, ...]:
        """Device nodes of real GPUs that other hosts have."""


def host(host: Dressed) -> None:
    """Dress the mounted disk of one host."""
    gateway = host.address.rpartition(".")[0] + ".1"
    etc = host.root / "etc"
    (etc / "hostname").write_text(f"{host.name}\n")
    with (etc / "hosts").open("a") as hosts:
        hosts.write(f"{host.address}\t{host.name}\n")
    mtu = Path("/sys/class/net", host.lab.bridge, "mtu").read_text().strip()
    text = NETWORK.format(address=host.address, address6=host.address6, gateway=gateway, mtu=mtu)
    (etc / "systemd/network/20-host0.network").write_text(text)
    host_key(host)
    if not host.devices:
        pose.write_host(host.root, host.name)
    if host.denied:
        host_gpus.write_own(host.root, host.devices)
    if host.kind == "lived":
        lived.write(host.root, host.lab.web)


def host_key(host: Dressed) -> None:
    """Put the host's key pair where its sshd reads it."""
    target = host.root / "etc/ssh/ssh_host_ed25519_key"
    for source, mode in ((host.host_key, 0o600), (host.host_key.with_suffix(".pub"), 0o644)):
        path = target.with_suffix(source.suffix)
        shutil.copy(source, path)
        path.chmod(mode)
