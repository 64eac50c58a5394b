"""Targets of a Prometheus, as its file_sd: the endpoints' metrics, and the hosts' node_exporter. Pure.

https://prometheus.io/docs/prometheus/latest/configuration/configuration/#file_sd_config
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rackwright.concerns.endpoint.container import served_name
from rackwright.loading.host import InventoryHost
from rackwright.settings.host_settings import EndpointSettings
from rackwright_engines.metrics import scrape

NODE_EXPORTER = 9100
"""Its port, in Debian's package and everywhere else."""
ENDPOINTS, NODES = "endpoints", "nodes"
"""Values of the label by which a Prometheus tells the two apart: __meta_rackwright_kind."""


@dataclass(frozen=True)
class Unscraped:
    """An endpoint without a target."""

    host: str
    endpoint: str
    why: str

    def __str__(self) -> str:
        return f"{self.host} {self.endpoint}: not scraped: {self.why}"


@dataclass(frozen=True)
class Targets:
    """Groups of file_sd, and the endpoints that are in none."""

    groups: tuple[dict[str, Any], ...]
    without: tuple[Unscraped, ...]

    def text(self) -> str:
        """Return the file's text."""
        return json.dumps(self.groups, indent=1) + "\n"


def targets_of(hosts: Sequence[InventoryHost], node_port: int = NODE_EXPORTER) -> Targets:
    """Return the targets of hosts, in the inventory's order: first all endpoints, then all node_exporters."""
    found = [row for host in hosts for row in _endpoints(host)]
    nodes = (_group(_address(host), node_port, {"host": host.name, **_kind(host, NODES)}) for host in hosts)
    return Targets(
        (*(row for row in found if isinstance(row, dict)), *nodes),
        tuple(row for row in found if isinstance(row, Unscraped)),
    )


def _endpoints(host: InventoryHost) -> Iterator[dict[str, Any] | Unscraped]:
    if host.settings.follows:
        return  # the head of its group answers
    for name, endpoint in host.settings.all_endpoints.items():
        where = scrape(endpoint)
        why = f"it listens on {endpoint.address} alone" if endpoint.is_local else where.why
        yield Unscraped(host.name, name, why) if why else _target(host, name, endpoint, where.path)


def _target(host: InventoryHost, name: str, endpoint: EndpointSettings, path: str) -> dict[str, Any]:
    labels = {
        "host": host.name,
        "endpoint": name,
        "engine": endpoint.engine_kind,
        "model": served_name(endpoint),
        "group": host.groups[-1] if host.groups else "",
        "__metrics_path__": path,
        **_kind(host, ENDPOINTS),
    }
    if endpoint.api_key is not None:
        labels["__meta_rackwright_api_key"] = "needed"
    return _group(_address(host, endpoint), endpoint.port, labels)


def _kind(host: InventoryHost, kind: str) -> dict[str, str]:
    """Return what a Prometheus relabels by and does not keep: the kind of target, and all groups, between commas."""
    return {"__meta_rackwright_kind": kind, "__meta_rackwright_groups": f",{','.join(host.groups)},"}


def _address(host: InventoryHost, endpoint: EndpointSettings | None = None) -> str:
    """Return the address by which others reach a host, or an endpoint that listens on one address alone."""
    bound = endpoint.bind if endpoint and endpoint.bind not in ("0.0.0.0", "::") else None
    return str(bound or host.data.get("ssh_hostname") or host.name)


def _group(address: str, port: int, labels: dict[str, str]) -> dict[str, Any]:
    bracketed = f"[{address}]" if ":" in address and not address.startswith("[") else address
    return {"targets": [f"{bracketed}:{port}"], "labels": labels}
