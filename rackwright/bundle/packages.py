"""Packages that hosts install: Docker Engine, the container toolkit, the gateway's programs, NVIDIA's driver."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rackwright.bundle.apt_root import KEYRINGS, AptRoot, PackageFile, archives, system_of
from rackwright.bundle.driver_packages import BundledDriver, bundled_driver, driver_files
from rackwright.bundle.fetching import Wanted, fetch
from rackwright.concerns.docker.apt import (
    BASICS,
    PYTHON,
    TOOLKIT,
    OperatingSystem,
    Repository,
    docker_repository,
    engine_packages,
    pin_text,
    toolkit_repository,
)
from rackwright.concerns.gateway.package import packages_of
from rackwright.concerns.proxy_values import values_of
from rackwright.hostside import host_script
from rackwright.messages import RackwrightError
from rackwright.settings.host_settings import HostSettings
from rackwright.sources.http import Client

AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
UBUNTU_KEYRING = Wanted(
    "the keyring of Ubuntu's archive",
    "http://archive.ubuntu.com/ubuntu/pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb",
    None,
    "36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8",
)
"""The package of Ubuntu 24.04, which has the keys of 22.04 as well: Debian 12 has no such package."""


@dataclass(frozen=True)
class PackageGroup:
    """Packages that are installed together, and the repository that brings them beside the system's own."""

    names: tuple[str, ...]
    repository: Repository | None = None
    preferences: str = ""
    driver: BundledDriver | None = None
    """Instead of names: all that a version of NVIDIA's driver has."""


def groups_of(hosts: Iterable[HostSettings], system: OperatingSystem) -> list[PackageGroup]:
    """Return what hosts of one system install, each group once."""
    return list(dict.fromkeys(group for settings in hosts for group in _groups(settings, system)))


def _groups(settings: HostSettings, system: OperatingSystem) -> Iterator[PackageGroup]:
    if settings.is_gateway:
        yield PackageGroup(packages_of(settings.gateway))
    if settings.is_gateway_alone:
        return
    yield PackageGroup(BASICS)
    if (hand_on := settings.downloads.hand_on) and hand_on.images:
        yield PackageGroup((PYTHON,))
    pin = pin_text(settings.docker.toolkit_version) or ""
    yield PackageGroup((TOOLKIT,), toolkit_repository(settings), pin)
    other = docker_repository(settings, system) if settings.docker.source == "docker" else None
    yield PackageGroup(engine_packages(settings.docker.source, system), other)
    if found := bundled_driver(settings, system):
        yield PackageGroup((), found[1], found[0].pin, found[0])


@dataclass(frozen=True)
class SystemPackages:
    """All packages of one system, and apt's list of them."""

    packages: dict[str, PackageFile]
    """By SHA-256."""
    index: str


def packages_for(name: str, hosts: Sequence[HostSettings]) -> SystemPackages:
    """Return the packages of a system. hosts: their settings. Raises RackwrightError where they cannot be found out."""
    system, found, records = system_of(name), dict[str, PackageFile](), dict[str, str]()
    with tempfile.TemporaryDirectory(prefix="rackwright-apt-") as folder:
        keyring = keyring_for(system, Client(hosts[0]), Path(folder))
        for number, group in enumerate(groups_of(hosts, system)):
            root = AptRoot(Path(folder) / str(number), system, _ways(hosts[0], Path(folder)))
            extra = [_source(hosts[0], group.repository, Path(folder))] if group.repository else []
            if number:  # apt asks whether the lists that it has are still the newest
                shutil.copytree(Path(folder) / "0/state/lists", root.folder / "state/lists")
            root.lay([*archives(system, keyring), *extra], group.preferences)
            files = driver_files(root, group.driver) if group.driver else root.packages(group.names)
            packages = {one.sha256: one for one in files}
            records |= root.records(packages)
            found |= packages
    return SystemPackages(found, "\n".join(records[sha256] for sha256 in sorted(records)))


def keyring_for(system: OperatingSystem, client: Client, folder: Path) -> Path:
    """Return the keyring by which a distribution's packages are verified: this machine's, or Ubuntu's by its SHA-256.

    Raises RackwrightError where it cannot be had.
    """
    keyring, package = (Path(KEYRINGS[system.id][0]), KEYRINGS[system.id][1])
    if keyring.is_file():
        return keyring
    if system.id != "ubuntu" or shutil.which("dpkg-deb") is None:
        text = f"{keyring} is missing, by which the packages of {system.id} are verified"
        raise RackwrightError(f"{text}; next: apt-get install {package}", code="RW3913")
    archive, target = folder / "keyring.deb", folder / "keyring"
    fetch(client, UBUNTU_KEYRING, archive, lambda _: None)
    subprocess.run(["dpkg-deb", "--extract", archive, target], check=True)
    return target / keyring.relative_to("/")


def _ways(settings: HostSettings, folder: Path) -> dict[str, str]:
    """Return apt's options for the proxy and the authority of the control machine."""
    proxies = values_of(settings.control_proxy or settings.proxy)
    ways = {f"Acquire::{one}::Proxy": proxies[f"{one}_proxy"] for one in ("http", "https") if proxies["http_proxy"]}
    if settings.paths.private_ca:
        both = folder / "authorities.pem"
        of_site = (settings.site / Path(settings.paths.private_ca).expanduser()).read_text()
        both.write_text(f"{AUTHORITIES.read_text() if AUTHORITIES.is_file() else ''}\n{of_site}")
        ways["Acquire::https::CAInfo"] = str(both)
    return ways


def _source(settings: HostSettings, repository: Repository, folder: Path) -> str:
    """Fetch a repository's key, and return its line. Raises RackwrightError for a key that is not pinned."""
    answer = Client(settings).get(repository.key, {})
    path = folder / f"{repository.name}.asc"
    path.write_bytes(answer.body if answer.status == 200 else b"")
    check = f'log=/dev/null\nonly_pinned "{path}" "{repository.key}" "{" ".join(repository.fingerprints)}"\n'
    done = subprocess.run(["sh", "-c", host_script("apt") + check], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RackwrightError(f"{' '.join(done.stdout.split())} (HTTP {answer.status})", code="RW3923")
    return repository.source.replace(repository.files[0], str(path))
