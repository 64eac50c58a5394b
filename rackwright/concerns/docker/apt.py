"""apt's configuration: the engine's packages, their repositories, and the proxy. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.plan.reading import whole_number
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.sections import Proxy

PROXY_FILE = "/etc/apt/apt.conf.d/95rackwright-proxy"
PIN_FILE = "/etc/apt/preferences.d/rackwright-container-toolkit"
ENGINES = ("docker.io", "docker-ce", "docker-cli", "docker-ce-cli", "containerd", "containerd.io", "runc")
TOOLKIT = "nvidia-container-toolkit"
TOOLKIT_FAMILY = (TOOLKIT, "nvidia-container-toolkit-base", "libnvidia-container-tools", "libnvidia-container1")
PROGRAMS = {"curl": "curl", "iptables": "iptables", "nft": "nftables"}
"""Programs that the host must have, each with its package; nft only where firewall() closes ports by it."""
BASICS = (*PROGRAMS.values(), "ca-certificates", "apparmor")
PYTHON = "python3"
"""The package, and the program, by which hosts hand images on."""
PACKAGES = (*ENGINES, *TOOLKIT_FAMILY, *BASICS, PYTHON)
"""All packages whose state is read."""
DRIVER = "nvidia-(driver|dkms|kernel|open|headless|fabricmanager|imex)|cuda-drivers|libnvidia-compute"
"""Start of the package names of NVIDIA's driver, as a regular expression for awk and Python."""
FAMILIES = ("debian", "ubuntu")
DEBIAN_WITH_DOCKER_CLI = 13
"""From this release on Debian's docker.io only recommends its command line client."""


@dataclass(frozen=True)
class OperatingSystem:
    """The operating system, from /etc/os-release and dpkg."""

    id: str
    like: tuple[str, ...]
    codename: str
    version: str
    architecture: str
    """dpkg's name: amd64, arm64."""

    @property
    def family(self) -> str | None:
        """`debian` or `ubuntu`, itself or as a derivative; None for others."""
        return next((family for family in (self.id, *self.like) if family in FAMILIES), None)

    @property
    def major(self) -> int:
        """First number of the release; 0 when it is missing."""
        return whole_number(self.version.split(".")[0]) or 0


@dataclass(frozen=True)
class Repository:
    """A third party's apt repository."""

    name: str
    key: str
    source: str
    fingerprints: tuple[str, ...]
    """Keys that may sign it."""

    @property
    def files(self) -> tuple[str, str]:
        """Its keyring and its sources list on the host."""
        return f"/etc/apt/keyrings/rackwright-{self.name}.asc", f"/etc/apt/sources.list.d/rackwright-{self.name}.list"


def toolkit_repository(settings: HostSettings) -> Repository:
    """Return NVIDIA's repository, or the mirror. apt itself replaces `$(ARCH)`."""
    base = settings.mirrors.container_toolkit.rstrip("/")
    signed = "signed-by=/etc/apt/keyrings/rackwright-container-toolkit.asc"
    source = f"deb [{signed}] {base}/stable/deb/$(ARCH) /"
    return Repository("container-toolkit", f"{base}/gpgkey", source, settings.mirrors.container_toolkit_keys)


def docker_repository(settings: HostSettings, system: OperatingSystem) -> Repository:
    """Return Docker's repository, or the mirror."""
    base = f"{settings.mirrors.docker.rstrip('/')}/linux/{system.family}"
    options = f"arch={system.architecture} signed-by=/etc/apt/keyrings/rackwright-docker.asc"
    source = f"deb [{options}] {base} {system.codename} stable"
    return Repository("docker", f"{base}/gpg", source, settings.mirrors.docker_keys)


def engine_packages(source: str, system: OperatingSystem) -> tuple[str, ...]:
    """Return the packages to install for Docker Engine from `source` (`distribution` or `docker`)."""
    if source == "docker":
        return ("docker-ce", "docker-ce-cli", "containerd.io")
    if system.id == "debian" and system.major >= DEBIAN_WITH_DOCKER_CLI:
        return ("docker.io", "docker-cli")
    return ("docker.io",)


def pin_text(version: str | None) -> str | None:
    """Return apt preferences that pin the whole toolkit family; None without a version.

    `install PACKAGE=VERSION` alone leaves its parts at the newest version, which apt then refuses.
    """
    if version is None:
        return None
    return f"Package: nvidia-container-toolkit* libnvidia-container*\nPin: version {version}\nPin-Priority: 1001\n"


def proxy_text(proxy: Proxy) -> str | None:
    """Return the text of Rackwright's apt configuration file; None without a proxy."""
    if not (proxy.http or proxy.https):
        return None
    chosen = (("http", proxy.http or proxy.https), ("https", proxy.https or proxy.http))
    lines = [f'Acquire::{scheme}::Proxy "{url}";' for scheme, url in chosen]
    direct = [host.lstrip(".") for host in proxy.no_proxy if host and "/" not in host and "*" not in host]
    lines += [f'Acquire::{scheme}::Proxy::{host} "DIRECT";' for host in direct for scheme in ("http", "https")]
    return "\n".join(lines) + "\n"
