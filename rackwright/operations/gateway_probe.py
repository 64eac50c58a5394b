"""Ask the gateways of a run whether they reach a host's endpoints, before and after its ports are closed to others."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from rackwright.adapter.command_output import tail
from rackwright.adapter.host import Host
from rackwright.adapter.run.inventories import settings_of
from rackwright.concerns.gateway.answer import health_url
from rackwright.concerns.gateway.files import ADMIN
from rackwright.hostside import host_script
from rackwright.plan.change import Shell
from rackwright.plan.reach import in_url
from rackwright.plan.reading import pairs
from rackwright.remote.commands import command_of, remote
from rackwright.remote.errors import StepFailedError
from rackwright.settings.backend import Server
from rackwright.settings.host_settings import HostSettings

SECONDS = 20
"""Time within which a gateway must have taken a server: the host's word is asked for every 2 s."""


def absent_gateways(host: Host, settings: HostSettings) -> list[str]:
    """Return the gateways that this run is not connected to: what they reach cannot be seen."""
    connected = {one.name for one in host.state.inventory if one.connected}
    return [one.host for one in settings.gateways if one.host not in connected]


def refuse_unless_through(host: Host, settings: HostSettings) -> list[str]:
    """Return a sentence for each server that a gateway reaches. Raises StepFailedError unless each gateway does.

    A gateway is asked on its own host.
    """
    gateways = [host.state.inventory.get_host(one.host) for one in settings.gateways]
    return [text for gateway in gateways for text in _through(gateway, host.name, settings)]


STAY = "direct clients are not shut out"


def _through(gateway: Host, host: str, settings: HostSettings) -> Iterator[str]:
    for server in _servers(settings_of(gateway), host):
        at = f"{in_url(server.address)}:{server.port}"
        answers = _ask(gateway, at)
        if why := lacking(answers, allowed(settings)):
            text = f"gateway {gateway.name} does not reach endpoint {server.endpoint} at {at}: {why}; {STAY}"
            raise StepFailedError(f"{text}; next: rackwright status INVENTORY; then the same command", code="RW3629")
        yield f"gateway {gateway.name} answers, and reaches endpoint {server.endpoint} at {at}"


def _servers(gateway: HostSettings, host: str) -> list[Server]:
    return [server for backend in gateway.backends for server in backend.servers if server.host == host]


def allowed(settings: HostSettings) -> list[str]:
    """Return the networks that closed ports let in, by a gateway's view; the host itself is always let in."""
    return [*settings.direct_clients, "127.0.0.0/8", "::1"]


def _ask(gateway: Host, at: str) -> dict[str, str]:
    health = health_url(settings_of(gateway))
    script = host_script("gateway_reach", health=health, socket=ADMIN, at=at, seconds=SECONDS)
    ok, output = remote(gateway, command_of(Shell(script, timeout=SECONDS + 30)), quiet=True)
    if not ok:
        text = f"gateway {gateway.name} could not be asked: {tail(output)}; {STAY}"
        raise StepFailedError(f"{text}; next: the same command again", code="RW3629")
    return pairs("\n".join(output.stdout_lines))


def lacking(answers: dict[str, str], networks: Sequence[str]) -> str:
    """Return what a gateway lacks to reach an endpoint; empty where it does. networks: those that are let in."""
    if answers.get("healthz") != "200":
        return f"/healthz answers {answers.get('healthz') or 'nothing'}"
    server = answers.get("server", "")
    if not server.startswith("UP"):
        return f"its server is {server or 'missing in HAProxy'}"
    if answers.get("endpoint", "000") == "000":
        return "no answer over a new connection"
    source = answers.get("source", "")
    if not _is_in(source, networks):
        return f"it connects from {source or 'an unknown address'}, which would be shut out (gateway.monitors)"
    return ""


def _is_in(source: str, networks: Sequence[str]) -> bool:
    try:
        address = ipaddress.ip_address(source)
    except ValueError:
        return False
    return any(address in ipaddress.ip_network(text) for text in networks)
