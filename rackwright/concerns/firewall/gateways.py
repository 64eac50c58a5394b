"""The gateways of an inventory may reach its endpoints, without a word of it in `allow_from`. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from rackwright.concerns.firewall.iptables_rules import Listeners
from rackwright.concerns.firewall.place import meeting_places
from rackwright.plan.change import Refuse
from rackwright.record.ending import FIX
from rackwright.settings.host_settings import EndpointSettings, HostSettings


def with_gateways(settings: HostSettings, endpoints: Listeners) -> Listeners:
    """Return the listeners with the gateways' addresses among their networks; a group's own ports stay as they are."""
    addresses = [ipaddress.ip_address(one.address) for one in settings.gateways if one.address]
    if not addresses:
        return endpoints
    groups_own = meeting_places(settings)
    return [pair if pair in groups_own else (pair[0], _open_to(pair[1], addresses)) for pair in endpoints]


def closed_to_all_but(settings: HostSettings, endpoints: Listeners) -> Listeners:
    """Return the listeners with the gateways and those whom they name as the only clients.

    A group's own ports stay as they are.
    """
    only = {"allow_from": settings.direct_clients}
    groups_own = meeting_places(settings)
    return [
        pair if pair in groups_own or pair[1].is_local else (pair[0], pair[1].model_copy(update=only))
        for pair in endpoints
    ]


def unknown(settings: HostSettings) -> Refuse | None:
    """Refuse gateways without an address: closed ports would not let them in."""
    names = ", ".join(gateway.host for gateway in settings.gateways if not gateway.address)
    if not names:
        return None
    text = f"the ports are closed to all but the gateways, and no address is known here of {names}"
    return Refuse(
        f"{text}; nothing was changed; next: set its ssh_hostname or fabric_address", code="RW2519", mistake=FIX
    )


def _open_to(
    endpoint: EndpointSettings, addresses: Sequence[ipaddress.IPv4Address | ipaddress.IPv6Address]
) -> EndpointSettings:
    networks = [ipaddress.ip_network(text) for text in endpoint.networks]
    missing = [str(ipaddress.ip_network(one)) for one in addresses if not any(one in network for network in networks)]
    if endpoint.is_open or endpoint.is_local or not missing:
        return endpoint
    return endpoint.model_copy(update={"allow_from": (*endpoint.networks, *missing)})
