"""Docker's own chains and bridge: dockerd makes them when it starts, and each start of a container needs them.

Running containers need none of them. A firewall script, `nft flush ruleset` or a firewalld that starts after dockerd
removes them; only a restart of dockerd makes them again. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rackwright.hostside import host_script, host_text

if TYPE_CHECKING:
    from rackwright.concerns.docker.seen import SeenDocker
    from rackwright.settings.host_settings import HostSettings

INTERFACE = "interface "
REJECTED = (
    "firewalld was started after dockerd and does not know Docker's bridge: it rejects clients of published ports that "
    "its own zones do not open, whatever allow_from says"
)


def gone(lacks: Iterable[str]) -> str:
    """Return the missing parts as the host's scripts name them; empty when none is missing."""
    names = list(lacks)
    interfaces = [name.removeprefix(INTERFACE) for name in names if name.startswith(INTERFACE)]
    chains = [name for name in names if not name.startswith(INTERFACE)]
    parts = [f"Docker's bridge {_interface(name)}" for name in interfaces]
    parts += [f"Docker's chains are gone ({', '.join(chains)})"] if chains else []
    return " and ".join(parts)


def _interface(name: str) -> str:
    bridge, _, state = name.partition(" ")
    return f"{bridge} is {state or 'gone'}"


def are_needed(settings: HostSettings) -> bool:
    """Return True if an endpoint publishes its port: one on the host's network needs no chain of Docker's."""
    return any(endpoint.network == "bridge" for endpoint in settings.all_endpoints.values())


def to_repair(settings: HostSettings, reading: SeenDocker) -> str:
    """Return the parts that a restart of dockerd would repair; empty if none, or if it would stop other containers."""
    return "" if reading.others_stop or not are_needed(settings) else gone(reading.lacks)


def still_gone_script() -> str:
    """Return shell lines that fail when nothing is missing now, as when the reading met a reload of firewalld."""
    return host_text("docker_lacks.sh") + host_script("docker_still_lacks")


def can_be_made_script() -> str:
    """Return shell lines that fail without changes where dockerd could not make its chains, and so could not start."""
    return host_script("docker_can_filter")


def can_restart_script() -> str:
    """Shell lines that fail, having changed nothing, where a dockerd that starts would wait without a limit."""
    return f"(\n{host_text('docker_start.sh')}{host_script('docker_can_restart')})\n[ $? = 0 ] || exit 1\n"
