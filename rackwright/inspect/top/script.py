"""The command that reads a host again and again over one connection; it changes nothing. Pure."""

from __future__ import annotations

from rackwright.concerns.drained import MARK
from rackwright.concerns.endpoint.container import local_url
from rackwright.concerns.gateway.answer import common_address, health_url
from rackwright.concerns.lease import LEASE
from rackwright.concerns.marks import MARKS
from rackwright.hostside import host_script
from rackwright.inspect.status.script import status_script
from rackwright.inspect.top.counters import counters_row
from rackwright.paths import ACTS, ENGINE_STATES, ENGINES_PAUSED, RUN
from rackwright.settings.host_settings import EndpointSettings, HostSettings

LOOK, STATUS = "look", "status"
"""Words by which the control machine asks for a reading."""
OVER = "over"
"""The last line of a reading."""


def top_script(settings: HostSettings, once: str = "") -> str:
    """Return the command for a host with these settings. once: the word of the only reading, where no word can come."""
    files = {"marks": MARKS, "states": ENGINE_STATES, "acts": ACTS, "paused": ENGINES_PAUSED}
    files |= {"drained": MARK, "lease": LEASE, "jobs": f"{RUN}/jobs"}
    endpoints = "\n".join(_row(name, one) for name, one in settings.all_endpoints.items() if _answers(settings, name))
    status = status_script(settings.all_endpoints, health_url(settings), common_address(settings))
    return host_script("top_read", once=once, status=status, endpoints=endpoints, **files)


def _answers(settings: HostSettings, endpoint: str) -> bool:
    """Return False for an endpoint of several hosts whose head is another one."""
    group = settings.group
    return group is None or group.endpoint != endpoint or group.is_head


def _row(name: str, endpoint: EndpointSettings) -> str:
    base = local_url(endpoint)
    return f"{name} {base}/health {counters_row(endpoint, base)}"
