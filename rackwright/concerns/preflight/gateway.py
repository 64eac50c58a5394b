"""Checks of a gateway: its port, its certificate, and HAProxy's package."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from rackwright.concerns.gateway.package import HAPROXY
from rackwright.concerns.preflight.network import holders, inspect_command
from rackwright.concerns.preflight.row import Case, Check
from rackwright.loading.gateway_certificate import read_chain
from rackwright.paths import GATEWAY_UNIT
from rackwright.settings.gateway_certificate import SOON, certificate_end

Verdicts = Iterator[tuple[bool, str, str]]


def gateway_port(case: Case) -> Verdicts:
    """Check that the gateway's ports are free, or held by the gateway itself."""
    if not case.settings.is_gateway or "ss" in case.machine.values:
        return
    for number in case.settings.gateway.ports:
        yield _port(case, number)


def _port(case: Case, number: int) -> tuple[bool, str, str]:
    listeners = [entry for entry in case.machine.listeners if entry.port == number]
    taken = [entry for entry in listeners if entry.unit != GATEWAY_UNIT]
    if not taken:
        return True, f"{number} is {'ours' if listeners else 'free'}", ""
    other = "or set gateway.port to another one" if number == case.settings.gateway.port else "gateway.acme needs it"
    return False, f"{number} is taken by {'; '.join(holders(taken))}", f"stop it, {other}: {inspect_command(taken)}"


OPENS = {
    "ufw": "ufw allow {port}/tcp",
    "firewalld": "firewall-cmd --add-port={port}/tcp && firewall-cmd --permanent --add-port={port}/tcp",
}
"""Command that opens a port, by the firewall; a reload of firewalld would flush Docker's chains."""


def reached(case: Case) -> Verdicts:
    """Check that the operator's firewall lets clients reach the gateway's port, which Rackwright does not open."""
    if not case.settings.is_gateway or case.gateway.closed not in OPENS:
        return
    port = case.settings.gateway.port
    fix = f"on the host: {OPENS[case.gateway.closed].format(port=port)}; HAProxy itself goes by gateway.allow_from"
    yield False, f"{port} is closed to clients by {case.gateway.closed}", fix


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


def certificate(case: Case) -> Verdicts:
    """Check that the certificate of the site does not end soon; what is worse is refused before any host is asked."""
    if not case.settings.is_gateway:
        return
    end = certificate_end(read_chain(case.settings) or "")
    if end is None:
        return
    text = f"ends on {end:%F}"
    yield end - datetime.now(UTC) >= SOON, text, "renew it, write it to gateway.certificate, and deploy"


GATEWAYS = (
    Check("gateway port", "stop", gateway_port, "RW3164"),
    Check("certificate", "warn", certificate, "RW3100"),
    Check("HAProxy", "warn", package, "RW3184"),
    Check("gateway firewall", "warn", reached, "RW3165"),
)
