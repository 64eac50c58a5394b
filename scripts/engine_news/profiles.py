"""Changes of a new release for each shipped profile, whose settings are checked by both releases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rackwright.engines.host import check_endpoint
from rackwright.profiles import catalog
from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright.settings.sections import Hardware
from rackwright_engines.data import PRODUCTS
from rackwright_engines.finding import Finding, Level
from rackwright_engines.key_path import dotted
from rackwright_engines.options.commandline import by_key, parsed
from rackwright_engines.options.compare import defaults_between
from rackwright_engines.options.schema import VersionLine, line_for
from rackwright_engines.quick_yaml import load_yaml
from rackwright_engines.version import bare
from scripts.engine_news.release import TRTLLM, Release

SIGNS = {Level.REFUSE: "must change", Level.WARN: "warning", Level.NOTE: "note"}
Place = tuple[object, ...]
ADDRESS = "192.0.2.1"
"""Stands for a member of a group of hosts."""


@dataclass(frozen=True)
class ProfileNews:
    """One profile under a new release."""

    name: str
    version: str
    """Its own."""
    lines: tuple[str, ...]
    """Changes from the known release to the new one."""
    to_move: tuple[str, ...]
    """Changes from its own version to the new one that refuse it or warn, those of `lines` among them."""


def profile_news(old: Release, new: Release) -> list[ProfileNews]:
    """Return what becomes of each profile of an engine."""
    settings = {name: settings_of(name) for name in catalog.names()}
    return [
        _news(name, one, endpoint, old, new)
        for name, one in settings.items()
        for endpoint in [next(iter(one.all_endpoints.values()))]
        if endpoint.engine_kind == new.engine
    ]


def settings_of(name: str) -> HostSettings:
    """Return a profile's settings, as a host of its group has them."""
    values = _merged(*(load_yaml(text) or {} for text in catalog.profile(name).files.values()))
    if values.get("hosts", 1) > 1:
        values["fabric_address"] = ADDRESS
    return HostSettings.model_validate({key: one for key, one in values.items() if key in HostSettings.model_fields})


def _merged(*parts: Mapping[str, Any]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            both = isinstance(value, dict) and isinstance(whole.get(key), dict)
            whole[key] = _merged(whole[key], value) if both else value
    return whole


def _news(name: str, settings: HostSettings, endpoint: EndpointSettings, old: Release, new: Release) -> ProfileNews:
    hardware = settings.hardware
    before_schema = line_for(endpoint.engine_kind, bare(endpoint.version))[0]
    now = _findings(endpoint, hardware, new.schema, new.version)
    since = [one for one in now if _place(one) not in _known(endpoint, hardware, old.schema, old.version)]
    before = _known(endpoint, hardware, before_schema, bare(endpoint.version))
    moved = [one for one in now if _place(one) not in before and one.level is not Level.NOTE]
    defaults = defaults_between(
        _options(endpoint, new), old.schema, new.schema, f"{PRODUCTS[new.engine]} {new.version}"
    )
    lines = [*map(_line, since), *(_line(one.below("engine")) for one in defaults)]
    return ProfileNews(name, endpoint.version, tuple(lines), tuple(map(_line, moved)))


def _findings(endpoint: EndpointSettings, hardware: Hardware, schema: VersionLine, version: str) -> list[Finding]:
    moved = endpoint.model_copy(update={"engine_version": version})
    return check_endpoint("llm", moved, hardware, schema)


def _known(endpoint: EndpointSettings, hardware: Hardware, schema: VersionLine, version: str) -> set[Place]:
    return {_place(one) for one in _findings(endpoint, hardware, schema, version)}


def _place(found: Finding) -> Place:
    """Return a finding without its sentence, which names the version and all values that it has."""
    return found.path, found.level, found.code


def _options(endpoint: EndpointSettings, new: Release) -> Mapping[str, Any]:
    """Return an endpoint's options by their own names, JSON as what it says."""
    if new.engine == TRTLLM:
        return endpoint.engine
    options = by_key(new.schema, endpoint.engine, endpoint.arguments)
    return {name: _section(value) for name, value in options.items()}


def _section(value: Any) -> Any:
    inside = parsed(value) if isinstance(value, str) else None
    return inside if isinstance(inside, dict) else value


def _line(found: Finding) -> str:
    return f"{SIGNS[found.level]}: {dotted(found.path)}: {found.sentence}"


def together(news: list[ProfileNews]) -> Iterator[tuple[tuple[str, ...], list[ProfileNews]]]:
    """Yield the lines that profiles have in common, and those profiles."""
    by_lines: dict[tuple[str, ...], list[ProfileNews]] = {}
    for one in news:
        by_lines.setdefault(one.lines, []).append(one)
    yield from by_lines.items()
