"""Endpoints: the unit runs the wanted release, it answers, and it has been proven."""

from rackwright.concerns.endpoint.asked import questions, tried_of
from rackwright.concerns.endpoint.concern import (
    ENDPOINT,
    WantedEndpoint,
    WantedEndpoints,
    changes,
    foreign_units,
    takes_capacity,
    waits,
)
from rackwright.concerns.endpoint.due import why_switch
from rackwright.concerns.endpoint.seen import BOOT_UNITS, SeenEndpoint, SeenEndpoints, last_switch, parse

__all__ = [
    "BOOT_UNITS",
    "ENDPOINT",
    "SeenEndpoint",
    "SeenEndpoints",
    "WantedEndpoint",
    "WantedEndpoints",
    "changes",
    "foreign_units",
    "last_switch",
    "parse",
    "questions",
    "takes_capacity",
    "tried_of",
    "waits",
    "why_switch",
]
