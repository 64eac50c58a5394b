"""Where things of ours lie on a host."""

from __future__ import annotations

STATE = "/var/lib/rackwright"
"""Ownership record, endpoints and their releases: survives a reboot."""
RUN = "/run/rackwright"
"""Jobs in flight and their short-lived secrets: root only, gone after a reboot."""
OWNED = f"{STATE}/owned.json"
ETC = "/etc/rackwright"
"""Small files that systemd units of ours read at boot."""


def endpoint_dir(endpoint: str) -> str:
    """Folder of one endpoint: `releases/HASH`, and the pointers `current` and `proven`."""
    return f"{STATE}/endpoints/{endpoint}"


def release_dir(endpoint: str, spec_hash: str) -> str:
    """Folder of one release, named by its content."""
    return f"{endpoint_dir(endpoint)}/releases/{spec_hash}"


def failed_dir(home: str) -> str:
    """Folder with the logs of failed tries, below an endpoint's folder or dockerd's; root's alone."""
    return f"{home}/failed"


def unit_name(endpoint: str) -> str:
    """systemd unit of an endpoint; its container has the same name without the suffix."""
    return f"rackwright-{endpoint}.service"


def container_name(endpoint: str) -> str:
    """Name of the endpoint's container."""
    return f"rackwright-{endpoint}"
