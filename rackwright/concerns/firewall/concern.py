"""Firewall: the seeds' rules for containers, and the networks that may reach each endpoint's port, IPv4 and IPv6.

Two sets of rules: drops before address translation stop all clients that are not allowed (drops.py); rules of the
filter table accept allowed clients, after the rules of other tools that close (accepts.py). A unit restores both at
boot, an endpoint does not start without the drops, and a timer checks both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rackwright.concerns.firewall.changes import OWNS, changes, report
from rackwright.concerns.firewall.place import ListenAddress, each_once, listeners, meeting_places
from rackwright.concerns.firewall.seen import READ_UNITS, SeenFirewall, joined, parse, read
from rackwright.concerns.firewall.wanted import WantedFirewall, for_listeners
from rackwright.plan.change import Change, Owned
from rackwright.plan.concern import Concern, HostReading
from rackwright.plan.ownership import RECORD
from rackwright.settings.host_settings import ENDPOINTS, HostSettings


def wanted(settings: HostSettings, reading: HostReading) -> WantedFirewall:
    """Return the rules for the current and wanted listen addresses; a port that is about to close keeps its rules."""
    firewall = reading[FIREWALL]
    return for_listeners(settings, reading, firewall, listeners(settings, firewall.current, firewall.proven))


def wanted_as_served(settings: HostSettings, reading: HostReading) -> WantedFirewall:
    """Return the rules for where the endpoints listen now: after a switch or a rollback nothing else is open."""
    endpoints, firewall = settings.all_endpoints, reading[FIREWALL]
    serving = [(name, firewall.current[name].put(one)) for name, one in endpoints.items() if name in firewall.current]
    return for_listeners(settings, reading, firewall, [*serving, *meeting_places(settings)])


def opening_changes(settings: HostSettings, reading: HostReading, targets: Mapping[str, ListenAddress]) -> list[Change]:
    """Return changes that open the ports that endpoints roll back to, by name, while they still listen elsewhere."""
    firewall = reading[FIREWALL]
    endpoints = listeners(settings, firewall.current, targets, wanted=False)
    others = {name: address for name, address in targets.items() if name not in settings.all_endpoints}
    # An endpoint that the settings no longer have is open to the networks that today's settings allow.
    today = next(iter(settings.all_endpoints.values()))
    endpoints = [*endpoints, *((name, address.put(today)) for name, address in others.items())]
    return changes(for_listeners(settings, reading, firewall, endpoints), firewall)


def is_ours(reading: HostReading) -> bool:
    """Return True if a deploy of Rackwright's has set the rules of this host."""
    record: frozenset[Owned] = reading[RECORD]
    return record.issuperset(OWNS)


def listens_elsewhere(settings: HostSettings, reading: HostReading) -> bool:
    """Return True if an endpoint listens elsewhere than the settings want, or is no longer in them.

    Never where deploy.py does not call firewall(): nothing of the firewall is read there.
    """
    if FIREWALL.name not in reading.by_concern:
        return False
    endpoints, firewall = settings.all_endpoints, reading[FIREWALL]
    return any(
        name not in endpoints or each_once([endpoints[name], at.put(endpoints[name])])[1:]
        for name, at in firewall.current.items()
    )


def new_addresses(reading: HostReading, places: Mapping[str, ListenAddress]) -> dict[str, ListenAddress]:
    """Return the addresses, by endpoint, where it does not listen now; none if deploy.py does not call firewall()."""
    if FIREWALL.name not in reading.by_concern:
        return {}
    current = reading[FIREWALL].current
    return {name: address for name, address in places.items() if current.get(name) != address}


TAKES = frozenset({ENDPOINTS, "firewall", "docker", "releases", "word"})
"""Sections of the settings that it is handed."""
FIREWALL: Concern[WantedFirewall, SeenFirewall] = Concern(
    "firewall", read, parse, wanted, changes, report, alone=True, takes=TAKES, units=READ_UNITS, joined=joined
)
FIREWALL_AS_SERVED: Concern[WantedFirewall, SeenFirewall] = Concern(
    "firewall", read, parse, wanted_as_served, changes, report, alone=True, takes=TAKES, units=READ_UNITS, joined=joined
)
"""The firewall after a host's turn: ports without a listener are closed again."""


def wanted_closed(settings: HostSettings, reading: HostReading) -> WantedFirewall:
    """Return the rules with the endpoints' ports closed to all but the gateways."""
    firewall = reading[FIREWALL]
    found = listeners(settings, firewall.current, firewall.proven)
    return for_listeners(settings, reading, firewall, found, closes=True)


def wanted_open(settings: HostSettings, reading: HostReading) -> WantedFirewall:
    """Return the rules with which `allow_from` counts, whatever is closed now."""
    firewall = reading[FIREWALL]
    found = listeners(settings, firewall.current, firewall.proven)
    return for_listeners(settings, reading, firewall, found, closes=False)


def closing_changes(settings: HostSettings, reading: HostReading) -> list[Change]:
    """Return the changes that close the endpoints' ports to all but the gateways; none where they are closed."""
    if not settings.direct_is_closed or FIREWALL.name not in reading.by_concern or reading[FIREWALL].is_closed:
        return []
    settings = settings.only(TAKES)
    return [
        replace(change, what=CLOSE) if change.diff else change
        for change in changes(wanted_closed(settings, reading), reading[FIREWALL])
    ]


def reopening_changes(settings: HostSettings, reading: HostReading) -> list[Change]:
    """Return the changes that open the endpoints' ports again to those whom `allow_from` lets in."""
    return changes(wanted_open(settings.only(TAKES), reading), reading[FIREWALL])


CLOSE = "close the endpoints' ports to all but the gateways, and confirm over a new connection"
CLOSE_DIRECT = "close_direct"
"""The step of deploy.py that does it."""
