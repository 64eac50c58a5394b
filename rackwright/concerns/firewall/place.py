"""Listen addresses of endpoints: by the settings, now, and after a rollback. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rackwright.concerns.firewall.iptables_rules import Listeners
from rackwright.settings.host_settings import EndpointSettings, HostSettings


@dataclass(frozen=True)
class ListenAddress:
    """The listen address of a release."""

    network: str
    address: str
    port: int

    @staticmethod
    def of(spec: Mapping[str, Any]) -> ListenAddress:
        """Return the address in a release's spec.json. Raises KeyError when it is missing."""
        return ListenAddress(spec["network"], spec["address"], spec["port"])

    def put(self, endpoint: EndpointSettings) -> EndpointSettings:
        """Return the endpoint's settings with this listen address; the allowed networks stay those of the settings."""
        return endpoint.model_copy(update={"network": self.network, "bind": self.address, "port": self.port})


def listeners(settings: HostSettings, *places: Mapping[str, ListenAddress], wanted: bool = True) -> Listeners:
    """Return each endpoint of the settings with every address where it listens, or will listen, each once."""
    found = []
    for name, endpoint in settings.all_endpoints.items():
        at = [endpoint] if wanted else []
        at += [addresses[name].put(endpoint) for addresses in places if name in addresses]
        found += [(name, one) for one in each_once(at or [endpoint])]
    return [*found, *meeting_places(settings)]


def meeting_places(settings: HostSettings) -> Listeners:
    """Return the rendezvous ports of a group on this host: only the other members may reach them."""
    group = settings.group
    if group is None:
        return []
    endpoint = settings.all_endpoints[group.endpoint]
    others = tuple(f"{member.address}/32" for member in group.members)
    # Whatever its flags are, torch listens there on all addresses.
    here = {"network": "host", "bind": "0.0.0.0", "allow_from": others}
    ports = (endpoint.group_port, endpoint.group_port + 1)
    return [(group.endpoint, endpoint.model_copy(update={**here, "port": port})) for port in ports]


def each_once(found: Iterable[EndpointSettings]) -> list[EndpointSettings]:
    """Return an endpoint's listen addresses, each once."""
    return list({(one.network, one.address, one.port): one for one in reversed(list(found))}.values())[::-1]
