"""`rackwright check --to VERSION`: what changes with another version of the engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rackwright.engines.exported import VERSION
from rackwright.engines.host import check_endpoint, placed
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError, coded
from rackwright.settings.host_settings import EndpointSettings
from rackwright.settings.origin import origin_of
from rackwright.settings.sections import Hardware
from rackwright_engines.finding import Finding, Level
from rackwright_engines.key_path import dotted
from rackwright_engines.options.compare import changed_defaults
from rackwright_engines.requests import Ignored, ignored_parameters

SIGNS = {Level.REFUSE: "must change", Level.WARN: "warning", Level.NOTE: "note"}


def refuse_no_version(version: str) -> None:
    """Raise RackwrightError for text that cannot be the tag of an image."""
    if not VERSION.fullmatch(version):
        text = f"--to {version!r}: must be a version or tag, as 1.2.0rc6: letters, digits and ._+- make one"
        raise RackwrightError(f"{text[:200]}; nothing was checked", code="RW1035")


def version_changes(hosts: Iterable[InventoryHost], version: str) -> Iterator[str]:
    """Yield what is refused, warned of, or otherwise new, and what no longer is; hosts with the same lines together."""
    hosts_by_text: dict[tuple[str, ...], list[str]] = {}
    for host in hosts:
        hosts_by_text.setdefault(tuple(_host(host, version)), []).append(host.name)
    for lines, names in hosts_by_text.items():
        yield f"{', '.join(names)}: {lines[0]}"
        yield from lines[1:]


def _host(host: InventoryHost, version: str) -> Iterator[str]:
    endpoints_by_text: dict[tuple[str, ...], list[str]] = {}
    for name, endpoint in host.settings.all_endpoints.items():
        endpoints_by_text.setdefault(tuple(_endpoint(host, name, endpoint, version)), []).append(name)
    for lines, names in endpoints_by_text.items():
        yield f"endpoint{'s' if len(names) > 1 else ''} {', '.join(names)}, {lines[0]}"
        yield from (f"  {text}" for text in lines[1:])


def _endpoint(host: InventoryHost, name: str, endpoint: EndpointSettings, version: str) -> Iterator[str]:
    moved = endpoint.model_copy(update={"engine_version": version})
    hardware = host.settings.hardware
    lines = [
        *(_line(host, placed(host.settings, name, one)) for one in _new(name, endpoint, moved, hardware)),
        *(f"no more: {_sentence(placed(host.settings, name, one))}" for one in _less(name, moved, endpoint, hardware)),
        *_requests(ignored_parameters(endpoint), ignored_parameters(moved)),
    ]
    yield f"{endpoint.version} to {version}:{'' if lines else ' nothing changes'}"
    yield from lines


def _new(name: str, old: EndpointSettings, new: EndpointSettings, hardware: Hardware) -> list[Finding]:
    defaults = changed_defaults(new.engine, old.version, new.version, new.engine_kind)
    return [*_less(name, old, new, hardware), *(one.below("engine") for one in defaults)]


def _less(name: str, one: EndpointSettings, other: EndpointSettings, hardware: Hardware) -> list[Finding]:
    """Return the findings of the other and not of the one, whatever version the sentence names."""
    before = {_bare(found, one.version) for found in check_endpoint(name, one, hardware)}
    return [found for found in check_endpoint(name, other, hardware) if _bare(found, other.version) not in before]


def _bare(found: Finding, version: str) -> tuple[object, ...]:
    return found.path, found.level, found.text.replace(version, "")


def _line(host: InventoryHost, found: Finding) -> str:
    where = origin_of(host.origins, found.path)
    prefix = f"{where}: " if where and found.level is Level.REFUSE else ""
    return f"{SIGNS[found.level]}: {_sentence(found, prefix)}"


def _sentence(found: Finding, prefix: str = "") -> str:
    return coded(found.code, f"{prefix}{dotted(found.path)}: {found.sentence}")


def _requests(old: list[Ignored], new: list[Ignored]) -> Iterator[str]:
    before, after = ([name for one in ignored for name in one.parameters] for ignored in (old, new))
    freed = [name for name in before if name not in after]
    lost = [name for name in after if name not in before]
    if freed:
        yield f"note: {', '.join(freed)} of a request count again"
    if lost:
        yield f"warning: {', '.join(lost)} of a request do nothing there: {'; '.join(one.text for one in new)}"
