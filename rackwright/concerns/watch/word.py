"""The host's word: a socket that tells gateways and peers whether its endpoints may get requests. Pure."""

from __future__ import annotations

import re

from rackwright.hostside import host_text
from rackwright.paths import ETC, UNITS, WORD_UNITS
from rackwright.plan.change import Change, Refuse
from rackwright.plan.render import render_own
from rackwright.settings.host_settings import EndpointSettings, HostSettings

SCRIPT = f"{ETC}/word"
NAME = "word"
"""Its name among the listeners of a host; no endpoint may have it."""
WORD_FILES = (SCRIPT, *(f"{UNITS}/{unit}" for unit in WORD_UNITS))
CONNECTIONS, PER_SOURCE = 256, 32
"""Questions that are answered at the same time: of all askers, and of one."""
GATEWAY = re.compile(r"[A-Za-z0-9._:-]{1,200}")
"""Names of hosts that a question can have."""
SECONDS = 10
"""Within which a question has ended, whatever the asker does."""


def word_files(settings: HostSettings) -> dict[str, str]:
    """Return the socket, the service of one question, and its script, by path."""
    socket, service = WORD_UNITS
    return {
        SCRIPT: host_text("marks.sh") + host_text("word_main.sh"),
        f"{UNITS}/{socket}": render_own(
            f"{socket}.j2", port=settings.word.port, connections=CONNECTIONS, per_source=PER_SOURCE
        ),
        f"{UNITS}/{service}": render_own(f"{service}.j2", script=SCRIPT, seconds=SECONDS),
    }


def question(endpoint: str, gateway: str) -> str:
    """Return the line by which a gateway asks for an endpoint's word; without its name where the host cannot note it.

    The name is what the host's note has: a gateway has several addresses.
    """
    # Peers ask `sent EVENT`.
    named = GATEWAY.fullmatch(gateway) and endpoint != "sent"
    return f"{endpoint} {gateway}" if named else endpoint


def port_taken(settings: HostSettings) -> str:
    """Return the endpoint of this host that has the word's port itself; empty when none has."""
    port = settings.word.port
    return next((name for name, one in settings.all_endpoints.items() if one.port == port), "")


def refusals(settings: HostSettings) -> list[Change]:
    """Refuse a port that is an endpoint's own: the host would answer its clients with the word, or not at all."""
    name = port_taken(settings)
    if not name:
        return []
    text = (
        f"port {settings.word.port} is the port of endpoint {name}, and the host's word needs one of its own; "
        "next: set word.port in group_vars to another one, for example 8019"
    )
    return [Change("let the host say its word", "its port is taken", (Refuse(text, code="RW2531"),))]


def listener(settings: HostSettings) -> EndpointSettings:
    """Return the word's port as the rules that accept see one: the drops alone decide who may ask.

    A rule for each peer would be a thousand rules in a large fleet.
    """
    base = next(iter(settings.all_endpoints.values()))
    return base.model_copy(update={"network": "host", "bind": "::", "allow_from": "any", "port": settings.word.port})


def askers(settings: HostSettings) -> tuple[str, ...]:
    """Return the addresses and networks that may ask: peers of its endpoints, gateways, and those of the settings."""
    peers = (peer.address for peers in settings.peers.values() for peer in peers if peer.address)
    gateways = (gateway.address for gateway in settings.gateways if gateway.address)
    return tuple(dict.fromkeys((*settings.word.allow_from, *peers, *gateways)))
