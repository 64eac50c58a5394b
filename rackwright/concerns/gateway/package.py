"""HAProxy's package: its version, and its installation from the system's repositories. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rackwright.concerns.docker.apt import OperatingSystem
from rackwright.concerns.proxy_values import proxy_values
from rackwright.hostside import host_script
from rackwright.plan.change import Change, Job, Owned
from rackwright.settings.from_bundle import packages_address
from rackwright.settings.gateway import Gateway
from rackwright.settings.host_settings import HostSettings

HAPROXY, CURL = "haproxy", "curl"
PACKAGES = (HAPROXY, CURL)
"""curl asks the gateway over a new connection after each change."""
ADDRESS_PACKAGES = ("keepalived", "nftables")
"""Those of a common address; nft lets new connections wait while it is handed over."""
TLS_PACKAGES = ("openssl",)
"""It says when a certificate ends."""
ACME_PACKAGES = ("uacme", "ca-certificates")
"""Those of a certificate by ACME; uacme itself does not ask for the roots that TLS is checked by."""
Version = tuple[int, int]
SHIPPED: Mapping[tuple[str, str], Version] = {
    ("debian", "11"): (2, 2),
    ("debian", "12"): (2, 6),
    ("debian", "13"): (3, 0),
    ("ubuntu", "22.04"): (2, 4),
    ("ubuntu", "24.04"): (2, 8),
}
"""Version that a system has in its repositories."""
USUAL: Version = (2, 6)
_NUMBERS = re.compile(r"(?:\d+:)?(\d+)\.(\d+)")


def version_of(text: str) -> Version | None:
    """Return the first two numbers of a package's version; None for anything else."""
    found = _NUMBERS.match(text)
    return (int(found[1]), int(found[2])) if found else None


def expected_version(packages: Mapping[str, str], candidate: str, system: OperatingSystem) -> Version:
    """Return the version of HAProxy on the host, or else the one that an installation brings."""
    version = version_of(packages.get(HAPROXY, "")) or version_of(candidate)
    return version or SHIPPED.get((system.id, system.version), USUAL)


def packages_of(gateway: Gateway) -> tuple[str, ...]:
    """Return all packages that a gateway needs."""
    by_setting = ((gateway.address, ADDRESS_PACKAGES), (gateway.tls, TLS_PACKAGES), (gateway.acme, ACME_PACKAGES))
    return (*PACKAGES, *(name for setting, names in by_setting if setting for name in names))


def install_change(settings: HostSettings, packages: Mapping[str, str]) -> list[Change]:
    """Return the change that installs what is missing."""
    missing = [name for name in packages_of(settings.gateway) if name not in packages]
    if not missing:
        return []
    proxies: dict[str, Any] = proxy_values(settings)
    script = host_script("apt") + host_script(
        "gateway_install", packages=" ".join(missing), bundle=packages_address(settings), **proxies
    )
    what = f"install {', '.join(missing)}"
    job = Job("gateway-install", what, script, timeout=1800, code="RW3644")
    return [Change(what, "missing", (job,), owns=tuple(Owned("package", name) for name in missing))]
