"""`rackwright check --to VERSION`: what changes with another version of the engine."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.engines import compare
from rackwright.engines.finding import Finding, Level
from rackwright.inventory import InventoryHost
from rackwright.settings.origin import dotted, origin_of

SIGNS = {Level.REFUSE: "must change", Level.WARN: "warning", Level.NOTE: "note"}


def moving(host: InventoryHost, version: str) -> Iterator[str]:
    """Lines about a host: per endpoint what is refused, warned of, or has another default there."""
    for name, endpoint in host.settings.all_endpoints.items():
        found = compare(endpoint.engine, endpoint.version, version, endpoint.engine_kind)
        yield f"{host.name}: endpoint {name}, {endpoint.version} to {version}:{'' if found else ' nothing changes'}"
        yield from (f"  {_line(host, one.below('engine'))}" for one in found)


def _line(host: InventoryHost, found: Finding) -> str:
    where = origin_of(host.origins, found.path)
    place = f"{where}: " if where and found.level is Level.REFUSE else ""
    return f"{SIGNS[found.level]}: {place}{dotted(found.path)}: {found.sentence}"
