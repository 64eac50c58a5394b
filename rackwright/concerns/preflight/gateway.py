"""Checks of a gateway: its port, and HAProxy's package."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.concerns.gateway.package import HAPROXY
from rackwright.concerns.preflight.network import holders, inspect_command
from rackwright.concerns.preflight.row import Case, Check
from rackwright.paths import GATEWAY_UNIT

Verdicts = Iterator[tuple[bool, str, str]]


def gateway_port(case: Case) -> Verdicts:
    """Check that the gateway's port is free, or held by the gateway itself."""
    if not case.settings.is_gateway or "ss" in case.machine.values:
        return
    number = case.settings.gateway.port
    listeners = [entry for entry in case.machine.listeners if entry.port == number]
    taken = [entry for entry in listeners if entry.unit != GATEWAY_UNIT]
    if not taken:
        yield True, f"{number} is {'ours' if listeners else 'free'}", ""
        return
    fix = f"stop it, or set gateway.port to another one: {inspect_command(taken)}"
    yield False, f"{number} is taken by {'; '.join(holders(taken))}", fix


def package(case: Case) -> Verdicts:
    """Check that HAProxy is installed, or that apt has it."""
    if not case.settings.is_gateway:
        return
    installed, candidate = case.gateway.packages.get(HAPROXY), case.gateway.candidate
    if installed or candidate:
        yield True, f"haproxy {installed or candidate}{'' if installed else ' from apt'}", ""
        return
    fix = "nothing where apt-get update finds it; in a closed network set proxy.http_proxy, or install it by hand"
    yield False, "haproxy is not installed, and apt's lists do not have it yet", fix


GATEWAYS = (
    Check("gateway port", "stop", gateway_port, "RW3164"),
    Check("HAProxy", "warn", package, "RW3184"),
)
