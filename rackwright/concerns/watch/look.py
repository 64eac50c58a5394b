"""The look at each endpoint between two deploys: what the host looks at, and the check that does it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.concerns.drained import MARK
from rackwright.concerns.endpoint.container import served_name
from rackwright.concerns.watch.units import BESIDE, WATCHED, check_file
from rackwright.hostside import DOCKER_ENVIRONMENT, host_script, host_text
from rackwright.paths import ENGINE_STATES, ENGINES_PAUSED, STATE
from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright_engines.watch import signs

LOOK = check_file("engines")
FULL_AFTER = 600
"""Seconds for which a full batch may stand still without a byte, and an engine without a counter be silent."""
FRESH = 600
"""Seconds after ready in which nothing counts as hung."""


def look_files(settings: HostSettings) -> dict[str, str]:
    """Return its files by path; none where the settings turn it off. Only the head of a group of hosts looks."""
    if settings.watch.act == "off" or settings.follows:
        return {}
    files = {f"{WATCHED}/{name}": watched_text(settings, one) for name, one in settings.all_endpoints.items()}
    return {LOOK: look_script(), **files} if files else {}


def watched_text(settings: HostSettings, endpoint: EndpointSettings) -> str:
    """Return what the look and the restart know of an endpoint, KEY=VALUE lines without secrets."""
    return "".join(f"{key}={value}\n" for key, value in _rows(settings, endpoint))


def _rows(settings: HostSettings, endpoint: EndpointSettings) -> Iterator[tuple[str, str | int]]:
    found = signs(endpoint)
    yield "engine", endpoint.engine_kind
    yield "steps", " ".join(found.steps)
    yield "moves", " ".join(found.moves)
    yield "sleep", found.sleep
    yield "awake", found.awake
    yield "compilers", " ".join(found.compilers)
    yield "metrics", found.path
    yield "health", "/health"
    yield "port", endpoint.port
    yield "model", served_name(endpoint)
    yield "after", settings.watch.after or found.after
    yield "full_after", max(FULL_AFTER, settings.watch.after or 0)
    yield "load", endpoint.load_timeout
    yield "fresh", FRESH
    yield "batch", found.batch
    yield "act", settings.watch.act
    yield "hosts", len(settings.group.hosts) if settings.group else 1


def look_script() -> str:
    """Return the check."""
    parts = [
        f"# Written by Rackwright: looks at the engine of each endpoint of {WATCHED}.\n{BESIDE}\nexport LC_ALL=C\n",
        DOCKER_ENVIRONMENT,
        host_text("holders.sh"),
        host_script("listener", listener_home=""),
        host_text("tell.sh"),
        host_text("open_requests.sh"),
        host_script(
            "look",
            watched=WATCHED,
            states=ENGINE_STATES,
            homes=f"{STATE}/endpoints",
            paused=ENGINES_PAUSED,
            drained=MARK,
            state_root=STATE,
        ),
    ]
    return "".join(parts)
