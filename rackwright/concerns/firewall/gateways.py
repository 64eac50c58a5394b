"""The gateways of an inventory may reach its endpoints, without a word of it in `allow_from`. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from rackwright.concerns.firewall.iptables_rules import Listeners
from rackwright.concerns.firewall.place import meeting_places
from rackwright.settings.host_settings import EndpointSettings, HostSettings


def with_gateways(settings: HostSettings, endpoints: Listeners) -> Listeners:
    """Return the listeners with the gateways' addresses among their networks; a group's own ports stay as they are."""
    addresses = [ipaddress.ip_address(one.address) for one in settings.gateways if one.address]
    if not addresses:
        return endpoints
    groups_own = meeting_places(settings)
    return [pair if pair in groups_own else (pair[0], _open_to(pair[1], addresses)) for pair in endpoints]


def _open_to(
    endpoint: EndpointSettings, addresses: Sequence[ipaddress.IPv4Address | ipaddress.IPv6Address]
) -> EndpointSettings:
    networks = [ipaddress.ip_network(text) for text in endpoint.networks]
    missing = [str(ipaddress.ip_network(one)) for one in addresses if not any(one in network for network in networks)]
    if endpoint.is_open or endpoint.is_local or not missing:
        return endpoint
    return endpoint.model_copy(update={"allow_from": (*endpoint.networks, *missing)})
