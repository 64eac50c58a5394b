"""Rights of an endpoint's container, as data per engine, version and topology (rackwright/data/rights.yaml)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rackwright.engines.tables import table
from rackwright.settings.host_settings import EndpointSettings
from rackwright.settings.sections import Hardware
from rackwright_engines.finding import Finding, Level
from rackwright_engines.version import bare, not_before

Topology = Literal["one host", "several hosts"]


@dataclass(frozen=True)
class Need:
    """A capability that a way of serving needs, why, and where that is known from."""

    capability: str
    why: str
    source: str


def needs(endpoint: EndpointSettings, hardware: Hardware, topology: Topology = "one host") -> list[Need]:
    """Return what an endpoint's backend needs beyond the default, each once."""
    found: dict[str, Need] = {}
    for row in table("rights")["needs"]:
        if row["topology"] == topology and _fits(row, endpoint, hardware):
            for name in row["capabilities"]:
                found.setdefault(name, Need(name, row["why"], row["source"]))
    return list(found.values())


def _fits(row: Mapping[str, Any], endpoint: EndpointSettings, hardware: Hardware) -> bool:
    wanted = row.get("options", {})
    return (
        row["engine"] in ("any", endpoint.engine_kind)
        and not_before(bare(endpoint.version), row["since"])
        and row.get("architecture") in (None, hardware.architecture or row.get("architecture"))
        and all(_option(endpoint.engine, key) in values for key, values in wanted.items())
    )


def _option(options: Mapping[str, Any], key: str) -> Any:
    """Return an option under either of its names: both engines read `moe_a2a_backend` as `moe-a2a-backend`."""
    return options.get(key, options.get(key.replace("-", "_")))


def rights(endpoint: EndpointSettings, hardware: Hardware, topology: Topology = "one host") -> tuple[str, ...]:
    """Return the words of `docker run` that give an endpoint's container its rights."""
    container, usual = endpoint.container, table("rights")["default"]
    dropped = ["ALL"] if container.capabilities == "none" else usual["drop"]
    given = (
        [need.capability for need in needs(endpoint, hardware, topology)] if container.capabilities == "default" else []
    )
    words = [argument for name in dropped for argument in ("--cap-drop", name)]
    words += [
        argument for name in dict.fromkeys((*given, *container.add_capabilities)) for argument in ("--cap-add", name)
    ]
    words += ["--security-opt", "no-new-privileges"] if usual["no_new_privileges"] else []
    words += ["--pids-limit", str(pids_limit(endpoint))]
    words += ["--user", container.user] if container.user else []
    return (*words, *(("--read-only", "--tmpfs", "/tmp") if container.read_only else ()))


def pids_limit(endpoint: EndpointSettings) -> int:
    """Return the number of processes and threads that the container may have."""
    return endpoint.container.pids_limit or int(table("rights")["default"]["pids_limit"])


def missing(endpoint: EndpointSettings, hardware: Hardware) -> list[Need]:
    """Return a backend's needs that `capabilities: none` removes, without those that `group_transport: rdma` grants."""
    if endpoint.container.capabilities == "default":
        return []
    topology: Topology = "several hosts" if endpoint.size > 1 else "one host"
    given = [*endpoint.container.add_capabilities, *(["IPC_LOCK"] if endpoint.group_transport == "rdma" else [])]
    return [need for need in needs(endpoint, hardware, topology) if need.capability not in given]


def check_rights(endpoint: EndpointSettings, hardware: Hardware) -> Iterator[Finding]:
    """Yield the capabilities that the settings take away from a backend that needs them."""
    for need in missing(endpoint, hardware):
        text = f"leaves out {need.capability}: {need.why}; write add_capabilities: [{need.capability}]"
        yield Finding(("container", "capabilities"), text, Level.WARN, link=need.source, code="RW0325")
