"""The restart of an endpoint that hangs or is dead: its script, its unit, and what it needs to know. Pure."""

from __future__ import annotations

from rackwright.concerns.endpoint.proof.gpu_errors import HARDWARE
from rackwright.concerns.endpoint.switch.transaction import act_time
from rackwright.concerns.watch.units import BESIDE, check_file
from rackwright.hostside import DOCKER_ENVIRONMENT, host_script, host_text
from rackwright.paths import ACT_UNIT, ETC, STATE, UNITS
from rackwright.plan.render import render_own
from rackwright.settings.host_settings import EndpointSettings, HostSettings

ACT_SCRIPT = f"{ETC}/watch-act"
TURN = 300
"""Seconds that a host may wait for its own minute, with some to spare."""


def act_files(settings: HostSettings) -> dict[str, str]:
    """Return its files by path."""
    endpoints = settings.all_endpoints
    seconds = TURN + max((act_time(endpoint) for endpoint in endpoints.values()), default=0)
    return {
        ACT_SCRIPT: act_script(),
        check_file("gpus"): gpus_script(),
        check_file("act"): render_own("watch-act.j2", beside=BESIDE, marks=f"{STATE}/marks"),
        f"{UNITS}/{ACT_UNIT}": render_own(f"{ACT_UNIT}.j2", script=ACT_SCRIPT, seconds=seconds),
        **{f"{ETC}/act-{name}": _times(endpoint) for name, endpoint in endpoints.items()},
    }


def act_script() -> str:
    """Return the script of a restart; its argument is the endpoint."""
    return DOCKER_ENVIRONMENT + "".join(map(host_text, ("durable.sh", "mark.sh", "tell.sh", "watch_act.sh")))


def gpus_script() -> str:
    """Return the check of the host's GPUs and ports."""
    first = f"# Written by Rackwright: looks at the GPUs and ports of this host.\n{BESIDE}\n"
    return first + host_text("durable.sh") + host_text("tell.sh") + host_script("watch_gpus", hardware=HARDWARE)


def _times(endpoint: EndpointSettings) -> str:
    return f"stop={endpoint.stop_timeout}\ndrain={endpoint.drain_timeout}\n"
