"""A gateway in front of the endpoints: its names, its port, its clients, its certificate and its limits."""

from __future__ import annotations

from ipaddress import IPv4Interface
from typing import Annotated, Literal

from pydantic import Field, model_validator

from rackwright.settings.acme import Acme
from rackwright.settings.allow_from import AllowFrom, Cidr, allowed_networks
from rackwright.settings.misfit import MisfitError
from rackwright.settings.secret import Secret
from rackwright.settings.sections import INTERFACE, YAML_FILE, Address, Frozen, Line, Port

CODE = "RW0124"
ACME_CODE = "RW0122"
ADDRESS_CODE = "RW0128"
HTTP_PORT = 80
"""The port at which an authority asks, and from which others are sent to HTTPS."""
DNS_NAME = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$"
"""A name of DNS in small letters; `host` routing puts the model's name before it."""
DnsName = Annotated[str, Field(pattern=DNS_NAME, max_length=253)]
Route = Literal["path", "header", "host", "body"]
Limit = Annotated[int, Field(ge=0, le=1_000_000)]
WILDCARDS = ("::", "0.0.0.0")


class Gateway(Frozen):
    """The HAProxy of a host in the inventory's group `gateway`, where deploy.py calls `gateway()`."""

    names: tuple[DnsName, ...] = ()
    """DNS names of the gateway; with `host` in `route_by`, MODEL.NAME leads to a model."""
    bind: Address = "::"
    """Address to listen on; `::` is IPv6 and IPv4."""
    port: Port = 443
    """TCP port of the gateway; with `tls: false` mostly 80."""
    allow_from: AllowFrom = "private"
    """Networks that may connect: a list of them, `private` (no address of the internet), or `any`."""
    tls: bool = True
    """False: requests and keys travel in clear, for example behind another server's TLS."""
    certificate: Line | None = None
    """PEM file in the site with the certificate and its chain."""
    certificate_key: Secret | None = None
    """Private key of the certificate, in PEM, as a vault value."""
    acme: Acme | None = None
    """In place of both: an authority gives the certificate, for all of `names`."""
    route_by: Annotated[tuple[Route, ...], Field(min_length=1)] = ("path", "header", "host")
    """Parts of a request that may name the model: the path (`/MODEL/v1/...`), the header `X-Model`, the host name
    (MODEL.NAME), and the JSON body's `model`. For the body, each request takes memory.
    """
    body_limit: Annotated[int, Field(ge=1, le=1024)] = 16
    """MiB that the body of a request may have."""
    requests_per_minute: Limit = 0
    """Requests a minute that a key has, where the file of keys says nothing else; 0 for no limit."""
    requests_in_flight: Limit = 0
    """Requests of a key at the same time, where the file of keys says nothing else; 0 for no limit."""
    keys: Annotated[str, Field(pattern=YAML_FILE)] = "gateway_keys.yml"
    """File in the site with the clients' names and the SHA-256 of their keys."""
    close_direct: bool = False
    """True: where deploy.py calls `close_direct()`, the endpoints' ports let in the gateways, the group's members and
    `monitors` alone, whatever `allow_from` says; once the gateway has been seen to reach the endpoint.
    """
    monitors: tuple[Cidr, ...] = ()
    """Networks that still reach the endpoints' ports then, as a Prometheus that scrapes them."""
    address: IPv4Interface | None = None
    """Address that one gateway has at a time, with the length of its network: `10.0.0.10/24`. keepalived gives it to
    the other one when the first no longer answers. All gateways must be in one network, without a router between them.
    """
    virtual_router_id: Annotated[int, Field(ge=1, le=255)] | None = None
    """Number of the address in the protocol VRRP; no other router of that network may have it."""
    interface: Annotated[str, Field(pattern=INTERFACE)] | None = None
    """Network interface for the address; default: the one that has an address in the same network."""

    @property
    def networks(self) -> tuple[str, ...]:
        """The networks that may connect; empty: all."""
        return allowed_networks(self.allow_from)

    @property
    def lacks_certificate(self) -> bool:
        """True if it is to speak TLS without a certificate."""
        return self.tls and self.certificate is None and self.acme is None

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports that it listens on."""
        return (self.port,) if self.acme is None else (self.port, HTTP_PORT)

    @model_validator(mode="after")
    def _fits(self) -> Gateway:
        if (self.certificate is None) != (self.certificate_key is None):
            missing = "certificate" if self.certificate is None else "certificate_key"
            raise MisfitError("is missing: a certificate and its key belong together", "gateway", missing, code=CODE)
        if self.acme and (text := self._misfit_of_acme()):
            raise MisfitError(text[1], "gateway", text[0], code=ACME_CODE)
        if text := self._misfit_of_address():
            raise MisfitError(text[1], "gateway", text[0], code=ADDRESS_CODE)
        return self

    def _misfit_of_acme(self) -> tuple[str, str] | None:
        """Return the key that does not fit to a certificate by ACME, and why."""
        if self.certificate:
            return "certificate", "is set, and so is `acme`, which gets one: take one of the two"
        if not self.names:
            return "names", "is missing, and `acme` asks for a certificate for them"
        if not self.tls:
            return "tls", "is false, and `acme` gets a certificate for TLS: take one of the two out"
        if self.port == HTTP_PORT:
            return "port", f"is {HTTP_PORT}, where the authority asks in clear: choose another, as 443"
        return None

    def _misfit_of_address(self) -> tuple[str, str] | None:
        """Return the key that does not fit to a common address, and why."""
        if self.address is None:
            extra = "virtual_router_id" if self.virtual_router_id else "interface"
            unused = self.virtual_router_id or self.interface
            return (extra, "is set without `address`, which it belongs to") if unused else None
        if self.virtual_router_id is None:
            return "virtual_router_id", "is missing, and `address` needs one: 1 to 255, which no other router there has"
        if self.bind not in WILDCARDS:
            return "bind", f"is {self.bind}, and the gateway must listen on `address`, too: leave `bind` out"
        return None
