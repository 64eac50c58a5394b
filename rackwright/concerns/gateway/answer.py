"""The answer of a host's gateway to the host itself. Pure."""

from __future__ import annotations

from rackwright.hostside import host_script
from rackwright.paths import ETC, GATEWAY_UNIT, STATE, UNITS
from rackwright.plan.change import Shell
from rackwright.settings.gateway import WILDCARDS
from rackwright.settings.host_settings import HostSettings

CERTIFICATE = f"{ETC}/gateway/certificates/gateway.pem"
"""Certificate, chain and key that the site has given."""
ISSUED = f"{STATE}/gateway/acme/served.pem"
"""Those by ACME."""
SECONDS = 60
"""Within which a gateway answers after a start of its host."""


def health_url(settings: HostSettings) -> str:
    """Return the URL at which a gateway answers on its own host; empty for other hosts."""
    if not settings.is_gateway:
        return ""
    gateway = settings.gateway
    return f"{'https' if gateway.tls else 'http'}://{on_host(gateway.bind)}:{gateway.port}/healthz"


def served_certificate(settings: HostSettings) -> str:
    """Return the path of the certificate that a gateway serves; empty for other hosts, and without TLS."""
    if not (settings.is_gateway and settings.gateway.tls):
        return ""
    return ISSUED if settings.gateway.acme else CERTIFICATE


def common_address(settings: HostSettings) -> str:
    """Return the address that one gateway has at a time; empty for other hosts, and without one."""
    address = settings.gateway.address if settings.is_gateway else None
    return str(address.ip) if address else ""


def on_host(bind: str) -> str:
    """Return the address at which the host itself reaches what listens on an address."""
    # Where IPv6 is switched off by sysctl, `::` still takes IPv4, and there is no ::1.
    address = "127.0.0.1" if bind in WILDCARDS else bind
    return f"[{address}]" if ":" in address else address


def gateway_answers(settings: HostSettings, seconds: int = SECONDS) -> tuple[Shell, ...]:
    """Return the step that waits for a gateway's answer, whether a model has a host or not; none on other hosts."""
    if not settings.is_gateway:
        return ()
    script = host_script("gateway_answers", url=health_url(settings), unit=GATEWAY_UNIT, units=UNITS, seconds=seconds)
    title = "the gateway does not answer after the restart of its host"
    return (Shell(script, timeout=seconds + 30, code="RW3654", title=title),)
