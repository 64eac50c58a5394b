"""The command of `rackwright status` for a host, which changes nothing. Pure, of few modules: logins wait for it."""

from __future__ import annotations

from collections.abc import Mapping

from rackwright.concerns.drained import MARK
from rackwright.concerns.endpoint.container import local_url
from rackwright.concerns.image import PINS
from rackwright.concerns.lease import LEASE
from rackwright.concerns.marks import MARKS
from rackwright.concerns.watch import WATCH_TIMER, repairs_file
from rackwright.concerns.watch.units import RUNNER
from rackwright.hostside import host_script, host_text
from rackwright.paths import (
    DOCKER_SOCKET,
    ENGINE_STATES,
    ENGINES_PAUSED,
    ENGINES_WATCHED,
    FIREWALL_GUARD,
    FIREWALL_LEFT,
    FIREWALL_OPENED,
    FIREWALL_SCRIPT,
    GATEWAY_UNIT,
    RUN,
    STATE,
    UNITS,
)
from rackwright.plan.directives import RUNNING
from rackwright.settings.host_settings import EndpointSettings


def status_script(
    endpoints: Mapping[str, EndpointSettings], gateway: str = "", address: str = "", certificate: str = ""
) -> str:
    """Return the command for hosts with these endpoints. gateway: URL that a gateway answers; empty for other hosts.

    address: the one that one gateway has at a time; empty without one. certificate: path of the one that it serves.
    """
    rows = [f"{name} {one.port:04X} {local_url(one)}/health" for name, one in endpoints.items()]
    places = {"home": f"{STATE}/endpoints", "images": PINS, "units": UNITS, "lease": LEASE, "docker": DOCKER_SOCKET}
    places |= {"rules": FIREWALL_SCRIPT, "left": FIREWALL_LEFT, "repairs": repairs_file(FIREWALL_GUARD)}
    places |= {"drained": MARK, "marks": MARKS, "groups": f"{RUN}/groups"}
    places |= {"opened": FIREWALL_OPENED, "runs": RUNNING, "paused": ENGINES_PAUSED}
    places |= {"runner": RUNNER, "timer": WATCH_TIMER, "watched": ENGINES_WATCHED, "states": ENGINE_STATES}
    places |= {"gateway": gateway, "gateway_unit": GATEWAY_UNIT, "address": address, "certificate": certificate}
    helpers = host_script("holders") + host_script("listener", listener_home="")
    functions = host_text("docker_lacks.sh") + host_text("docker_start.sh")
    return functions + helpers + host_script("status_read", endpoints="\n".join(rows), **places)
