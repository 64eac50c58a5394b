"""Endpoints that other hosts serve than the settings want: no switch leads there. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from rackwright.concerns.endpoint.binding import Binding
from rackwright.concerns.endpoint.group.members import is_elsewhere
from rackwright.concerns.endpoint.seen import SeenEndpoints

CODE = "RW2421"
TEARDOWN = "rackwright teardown INVENTORY with --limit for each of its hosts"
"""The way there; a deploy follows."""


def on_other_hosts(wanted: Mapping[str, Binding], together: bool, reading: SeenEndpoints) -> list[str]:
    """Return the names of endpoints that other hosts than before are to serve, or the same at other ranks.

    wanted: the binding of each wanted endpoint. together: whether this host serves one of them with others.
    """
    gone = {name: endpoint for name, endpoint in reading.endpoints.items() if name not in wanted}
    named = [name for name, endpoint in gone.items() if endpoint.spec.get("members", 1) > 1]
    if together:
        named += [name for name, endpoint in gone.items() if endpoint.serving and name not in named]
    return named + [name for name, binding in wanted.items() if is_elsewhere(binding, reading.endpoints.get(name))]


def in_words(name: str) -> str:
    """Return the refusal of such an endpoint, for people."""
    why = "other hosts than before are to serve it, or in other places, and a switch does not lead there"
    why = "other hosts than before are to serve it, or in other places, and a switch does not lead there"
    return f"endpoint {name}: {why}"
