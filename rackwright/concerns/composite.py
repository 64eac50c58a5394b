"""Compose the one command that reads several concerns of a host, and parse its output. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rackwright.hostside import DOCKER_ENVIRONMENT, host_script, host_text
from rackwright.paths import DOCKER_SOCKET, STATE, unit_name
from rackwright.plan import reading
from rackwright.plan.concern import SHARED, Concern, HostReading, parse_all
from rackwright.plan.reading import Section
from rackwright.settings.host_settings import HostSettings


def composite(
    concerns: Sequence[Concern[Any, Any]], settings: HostSettings, more: Mapping[str, str] | None = None
) -> str:
    """Return the script that reads the concerns, followed by the sections of `more` by name."""
    shared = {name: host_script(f"{name}_read") for name in SHARED}
    scripts = {concern.name: concern.read(settings) for concern in concerns}
    return reading.script({**shared, **scripts, **(more or {})}, _shared(concerns, settings))


def _shared(concerns: Sequence[Concern[Any, Any]], settings: HostSettings) -> str:
    of_concerns = [unit for concern in concerns for unit in concern.units]
    wanted = dict.fromkeys(["docker.service", *of_concerns, *map(unit_name, settings.all_endpoints)])
    home = f"{STATE}/endpoints"
    folders = " ".join(folders_of(settings))
    mounts = host_script("mounts_ask", reading_folders=folders)
    units = host_script("shared_read", reading_asked=" ".join(wanted), reading_home=home)
    engine = host_script("holders") + host_script("engine_ask", reading_socket=DOCKER_SOCKET)
    functions = "".join(map(host_text, ("docker_lacks.sh", "docker_store.sh", "docker_start.sh")))
    return DOCKER_ENVIRONMENT + mounts + units + engine + functions


def folders_of(settings: HostSettings) -> list[str]:
    """Return the folders of the settings that may be on another machine's file system."""
    sources = [source for endpoint in settings.all_endpoints.values() for source in (endpoint.model, endpoint.draft)]
    paths = [source.path for source in sources if source and source.path]
    return list(dict.fromkeys([settings.models.folder, settings.encodings.folder, *paths]))


def parse_composite(
    lines: Iterable[str], concerns: Sequence[Concern[Any, Any]], managed: frozenset[str] | None = None
) -> HostReading:
    """Parse the script's output for the concerns. Raises ReadingError when it is cut short or invalid."""
    return parse_all(concerns, sections_of(lines, concerns), managed)


def sections_of(
    lines: Iterable[str], concerns: Sequence[Concern[Any, Any]], more: Iterable[str] = ()
) -> dict[str, Section]:
    """Return the printed sections, at least those of the concerns and of `more`. Raises ReadingError."""
    return reading.parse(lines, [*SHARED, *(concern.name for concern in concerns), *more])
