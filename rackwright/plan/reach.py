"""Reachability of an endpoint's port for an allowed client: the possible probers, and the result as text.

The proof itself uses SSH, and so cannot show it. `effects/local_probe.py` connects.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rackwright.messages import ReadingError
from rackwright.plan.reading import pairs
from rackwright.settings.allow_from import who
from rackwright.settings.host_settings import EndpointSettings

SECONDS = 3
HERE = "this machine"
NO_ANSWER = "no answer"
REFUSED = "refused"
CONNECT = ": connect: "
"""Text before the system's error in bash's message about /dev/tcp."""


@dataclass(frozen=True)
class ClientPort:
    """The entry of clients: the port, and the allowed networks (empty: all)."""

    port: int
    networks: tuple[str, ...]
    network: Literal["bridge", "host"] = "bridge"
    address: str = ""
    """The only address that it answers on; empty: any of the host's."""

    def lets_in(self, address: str) -> bool:
        """Return True if the networks allow an address; an unknown one is not allowed."""
        try:
            found = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        client = getattr(found, "ipv4_mapped", None) or found
        return not self.networks or any(client in ipaddress.ip_network(text, strict=False) for text in self.networks)


def unreached(settings: EndpointSettings) -> tuple[str, ...]:
    """Return the networks of allow_from whose IP version the endpoint does not use.

    `0.0.0.0` is IPv4 alone; `::` is both on the host's network, and IPv6 alone where Docker publishes it.
    """
    if settings.allow_from in (None, "private", "any") or settings.is_local:
        return ()
    bound = ipaddress.ip_address(settings.address)
    if bound == ipaddress.ip_address("::") and settings.network == "host":
        return ()
    return tuple(
        text for text in settings.networks if ipaddress.ip_network(text, strict=False).version != bound.version
    )


def unreached_text(settings: EndpointSettings) -> str:
    """Return the sentence on such networks; empty without one."""
    networks = unreached(settings)
    if not networks:
        return ""
    version = ipaddress.ip_address(settings.address).version
    does = "listens" if settings.network == "host" else "is published"
    if settings.network == "host":
        way = 'set bind: "::" for both'
    elif networks == settings.networks:
        way = f'set bind: "{"::" if version == 4 else "0.0.0.0"}"'
    else:
        way = 'network: host with bind: "::" serves both'
    return (
        f"no client of {', '.join(networks)} (allow_from) reaches it, as it {does} on {settings.address}, which is "
        f"IPv{version} alone: {way}"
    )


def client_port_of(settings: EndpointSettings, only: Sequence[str] = ()) -> ClientPort | None:
    """Return the port for an endpoint's clients; None when it listens on loopback only.

    only: the networks that reach it, where it is closed to all but the gateways.
    """
    if settings.is_local:
        return None
    bound = ipaddress.ip_address(settings.address)
    networks = tuple(only) or settings.networks
    return ClientPort(settings.port, networks, settings.network, "" if bound.is_unspecified else str(bound))


@dataclass(frozen=True)
class Prober:
    """A machine that may probe: its name, its address as the host sees it (empty: unknown)."""

    name: str
    address: str

    def __str__(self) -> str:
        return f"{self.name} ({self.address})" if self.address else self.name


@dataclass(frozen=True)
class ProbeResult:
    """The result of a connection attempt; `why` it failed, or empty."""

    by: Prober
    why: str = ""


def first_let_in(client_port: ClientPort, probers: Iterable[Prober]) -> Prober | None:
    """Return the first prober that the networks allow; the others are not even evaluated."""
    return next((one for one in probers if client_port.lets_in(one.address)), None)


def likely_first(client_port: ClientPort, peers: Sequence[Prober]) -> list[Prober]:
    """Return the peers by their known addresses, allowed ones first; they report their source address themselves."""
    return sorted(peers, key=lambda one: not client_port.lets_in(one.address))


# -- from a peer


def why_probe_failed(lines: Sequence[str]) -> str:
    """Return why no connection was made, from the output of the probe script in effects/host; empty when one was.

    Raises ReadingError when the attempt was not possible.
    """
    why = next((row.partition(CONNECT)[2] for row in lines if CONNECT in row), "").lower()
    match pairs("\n".join(lines)).get("status"):
        case "0":
            return ""
        case "124":
            return NO_ANSWER
        case "1" if why:
            return {"connection refused": REFUSED, "connection timed out": NO_ANSWER}.get(why, why)
    raise ReadingError(lines[0] if lines else "bash printed nothing", code="RW0505")


# -- as text


def reachable(client_port: ClientPort, by: Prober, failed: Sequence[ProbeResult]) -> str:
    """Return the sentence for a successful connection; failed: the attempts of allowed probers that failed."""
    text = f"port {client_port.port} is reachable from {HERE if by.name == HERE else by}"
    if failed:
        return f"warning: {text}, and not from {_tried(failed)}: a firewall between them, or the network, may close it"
    return text if by.name == HERE else f"{text}; {HERE} is not let in (allow_from: {who(client_port.networks)})"


LOOK = "next, on this host: sudo iptables-save; sudo nft list ruleset"


def unreachable(client_port: ClientPort, failed: Sequence[ProbeResult], address: str) -> str:
    """Return the sentence for a port that no allowed prober reaches. address: the host's, for them."""
    allowed = f"(allow_from: {who(client_port.networks)})"
    text = f"warning: port {client_port.port} is not reachable from {_tried(failed)} {allowed}"
    if all(one.why == REFUSED for one in failed):
        by_family = ', as bind 0.0.0.0 is IPv4 alone; next: set bind: "::", then rackwright check INVENTORY'
        return f"{text}; nothing listens at {in_url(address)}:{client_port.port}" + (
            by_family if ":" in address else f", or a rule of this host rejects it; {LOOK}; rackwright status INVENTORY"
        )
    between = f"a firewall between {failed[0].by} and {address}, or the network"
    return f"{text}; a rule of this host, {between}, drops it; {LOOK}"


def not_checked(client_port: ClientPort, here: Prober, peers: Sequence[Prober], address: str) -> str:
    """Return the sentence when no possible prober is allowed. peers: the other hosts that were asked."""
    probers = ", ".join(map(str, [here, *peers]))
    more = "" if peers else ", and no other host of this run is connected"
    return (
        f"port {client_port.port} is not checked: allow_from ({who(client_port.networks)}) lets in none of {probers}"
        f"{more}; "
        f"next, from where clients are: curl http://{in_url(address)}:{client_port.port}/health"
    )


def in_url(address: str) -> str:
    """Return an address in the form of a URL."""
    return f"[{address}]" if ":" in address else address


def _tried(failed: Sequence[ProbeResult]) -> str:
    return " nor from ".join(f"{one.by} [{one.why}]" for one in failed)
