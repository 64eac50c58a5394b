"""A host's settings where a bundle is its source: each server's address is a port of the host that leads to it."""

from __future__ import annotations

from typing import Any

from rackwright.settings.host_settings import HostSettings

HUB, ENCODINGS, PACKAGES = "hub", "encodings", "packages"
"""First steps of the paths that the bundle's server answers, beside a registry's `v2`."""
HOST = "127.0.0.1"


def address_of(settings: HostSettings) -> str:
    """Return the address at which a host finds the bundle; empty without one."""
    return f"http://{HOST}:{settings.bundle.port}" if settings.bundle.folder else ""


def packages_address(settings: HostSettings) -> str:
    """Return the address below which a host finds the packages of each system; empty without a bundle."""
    return f"{address}/{PACKAGES}" if (address := address_of(settings)) else ""


def from_bundle(settings: HostSettings) -> HostSettings:
    """Return the same settings, with the bundle as the source of everything; they are unchanged without a bundle.

    No key and no token leaves the control machine then, and no proxy is on the way.
    """
    address = address_of(settings)
    if not address:
        return settings
    mirrors = {"hub": f"{address}/{HUB}", "encodings": f"{address}/{ENCODINGS}"}
    mirror = {"registry-mirrors": [address]}  # dockerd takes Docker Hub's images there, and reads it without a restart
    changes: dict[str, Any] = {
        "mirrors": settings.mirrors.model_copy(update=mirrors),
        "models": settings.models.model_copy(update={"hub_token": None}),
        "registry": settings.registry.model_copy(update={"key": None}),
        "docker": settings.docker.model_copy(update={"daemon": {**settings.docker.daemon, **mirror}}),
        "proxy": settings.proxy.model_copy(update={"http": None, "https": None}),
    }
    return settings.model_copy(update=changes)
