"""download.docker.com: Docker's apt repository, with its layout and package names, signed by the lab.

What is in the packages is real: Debian's Docker Engine, containerd and runc, laid out as Docker's packages have
them. They come from the apt archive of the bare base system, so nothing is fetched for it.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from functools import partial
from pathlib import Path

from rackwright_lab.machine.shell import LabError, run
from rackwright_lab.servers import aptrepo
from rackwright_lab.servers.aptrepo import ARCHITECTURE, Control

SUITE = "bookworm"
KEY_NAME = "Rackwright lab stand-in for Docker Inc. <lab@localhost>"
SOURCES = ("docker.io", "containerd", "runc", "tini")
STATE = Path("var/cache/apt/archives")
# Raise it when the making of the packages changes in a way that their sources do not show.
FORMAT = 1

SERVICE_SCRIPTS = {
    "postinst": """\
#!/bin/sh
set -e
[ "$1" = configure ] || exit 0
getent group docker >/dev/null || groupadd --system docker
deb-systemd-helper enable UNITS >/dev/null
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
deb-systemd-invoke start UNITS >/dev/null || true
""",
    "prerm": """\
#!/bin/sh
set -e
[ "$1" = remove ] && [ -d /run/systemd/system ] || exit 0
deb-systemd-invoke stop UNITS >/dev/null || true
""",
    "postrm": """\
#!/bin/sh
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload
[ "$1" != purge ] || deb-systemd-helper purge UNITS >/dev/null || true
""",
}


def repository(cache: Path, base: Path) -> Path:
    """Return the repository's tree, as https://download.docker.com has it below its root; made once for its sources.

    base: the bare base system. Raises LabError when its apt archive lacks one of the packages.
    """
    sources = {name: _source(base, name) for name in SOURCES}
    key = hashlib.sha256(repr([FORMAT, SERVICE_SCRIPTS, sorted(path.name for path in sources.values())]).encode())
    built = partial(_build, sources=sources)
    return aptrepo.built_once(cache / f"docker-apt-{key.hexdigest()[:12]}", built)


def _source(base: Path, name: str) -> Path:
    found = sorted((base / STATE).glob(f"{name}_*.deb"))
    if not found:
        raise LabError(f"{base / STATE} has no {name}: remove {base} and run rackwright lab up again")
    return found[-1]


def _build(tree: Path, work: Path, sources: dict[str, Path]) -> None:
    linux = tree / "linux/debian"
    pool, suite = linux / f"dists/{SUITE}/pool/stable/{ARCHITECTURE}", linux / f"dists/{SUITE}"
    pool.mkdir(parents=True)
    for name, source in sources.items():
        run("dpkg-deb", "--extract", source, work / name)
    engine, runtime = _upstream(sources["docker.io"]), _upstream(sources["containerd"])
    _containerd(work, pool, f"{runtime}-1")
    _client(work, pool, f"5:{engine}-1~debian.12~{SUITE}")
    _engine(work, pool, f"5:{engine}-1~debian.12~{SUITE}")
    aptrepo.index(linux, str(pool.relative_to(linux)), f"dists/{SUITE}/stable/binary-{ARCHITECTURE}")
    origin = ("Origin: Docker", "Label: lab", f"Suite: {SUITE}", f"Codename: {SUITE}", "Components: stable")
    architectures = (f"Architectures: {ARCHITECTURE}",)
    aptrepo.sign(suite, KEY_NAME, (*origin, *architectures), linux / "gpg", work / "gnupg")


def _upstream(package: Path) -> str:
    return re.split(r"[+~-]", package.name.split("_")[1])[0]


def _containerd(work: Path, pool: Path, version: str) -> None:
    root = work / "containerd.io"
    _take(work / "containerd", root, "etc/containerd/config.toml", "lib/systemd/system/containerd.service")
    _take(work / "containerd", root, *(f"usr/bin/containerd{part}" for part in ("", "-shim-runc-v2")), "usr/bin/ctr")
    _move(work / "runc/usr/sbin/runc", root / "usr/bin/runc")
    fields = {"Depends": "libc6, libseccomp2 (>= 2.5.0)", **_instead_of("containerd, runc")}
    aptrepo.package(root, pool, Control("containerd.io", version, fields, _scripts("containerd.service")), KEY_NAME)


def _client(work: Path, pool: Path, version: str) -> None:
    root = work / "docker-ce-cli"
    _take(work / "docker.io", root, "usr/bin/docker")
    aptrepo.package(root, pool, Control("docker-ce-cli", version, {"Depends": "libc6"}), KEY_NAME)


def _engine(work: Path, pool: Path, version: str) -> None:
    root = work / "docker-ce"
    units = ("docker.service", "docker.socket")
    _take(work / "docker.io", root, "etc/default/docker", *(f"lib/systemd/system/{unit}" for unit in units))
    for name in ("dockerd", "docker-proxy"):
        _move(work / "docker.io/usr/sbin" / name, root / "usr/bin" / name)
    _move(work / "tini/usr/bin/tini-static", root / "usr/bin/docker-init")
    unit = root / "lib/systemd/system/docker.service"
    unit.write_text(unit.read_text().replace("/usr/sbin/dockerd", "/usr/bin/dockerd"))
    depends = "containerd.io, docker-ce-cli, iptables, libc6, libdevmapper1.02.1, libsystemd0"
    fields = {"Depends": depends, **_instead_of("docker.io")}
    aptrepo.package(root, pool, Control("docker-ce", version, fields, _scripts(" ".join(units))), KEY_NAME)


def _instead_of(names: str) -> dict[str, str]:
    return {"Conflicts": names, "Replaces": names}


def _scripts(units: str) -> dict[str, str]:
    return {name: text.replace("UNITS", units) for name, text in SERVICE_SCRIPTS.items()}


def _take(source: Path, target: Path, *names: str) -> None:
    for name in names:
        _move(source / name, target / name)


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(source, target)
