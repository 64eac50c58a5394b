"""A release: all files of one endpoint, the same on every host, in a folder named by the hash of them all. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackwright.concerns.endpoint.binding import binding_path
from rackwright.concerns.endpoint.container import FORMAT, EndpointSpec
from rackwright.concerns.endpoint.group.files import launch_files, member_files
from rackwright.engines.launch import launch_port, launch_ports
from rackwright.hostside import host_script
from rackwright.messages import SettingsError
from rackwright.paths import (
    DOCKER_HOST,
    DOCKER_MISLEADING,
    ENCODING_MARKS,
    MANIFESTS,
    container_name,
    endpoint_dir,
    keyed_dir,
    keys_dir,
    release_dir,
    unit_name,
)
from rackwright.plan.render import render, systemd_command
from rackwright.settings.group import DAEMON_PORTS
from rackwright.settings.host_settings import EndpointSettings

SUMS = "SHA256SUMS"
NEEDS = "needs"
"""Names what must be on the host for the release to start, as the host's own scripts read it."""
VERIFIED = "verified"
"""Looks before a start whether models and encodings are what this host has verified."""
SELF = "@rackwright-release@"
"""Stands for the release's own hash, wherever it occurs, while the hash is made."""


@dataclass(frozen=True)
class UnitLimits:
    """Time limits of a unit, in seconds. The interval makes the start limit trip even after slow deaths."""

    starts: int
    load: int
    stop: int
    restart_delay: int
    together: bool = False
    """True where it starts with other hosts, and waits for them."""

    @property
    def start(self) -> int | str:
        """A member of a group waits for the others as long as it takes; it ends a load that takes too long itself."""
        return "infinity" if self.together else self.load

    @property
    def interval(self) -> int:
        """With systemd's default of 10 s it never trips on an engine that dies after eight minutes (DECISIONS 8)."""
        return self.starts * (self.load + self.stop + 15 + self.restart_delay)


@dataclass(frozen=True)
class Release:
    """The serving part, and every file of it by name. Other files are another release (DECISIONS 40)."""

    spec: EndpointSpec
    hash: str
    files: Mapping[str, str]

    @property
    def facts(self) -> dict[str, Any]:
        """Contents of spec.json."""
        return facts_of(self.spec, self.hash)

    @property
    def path(self) -> str:
        """The folder on the host."""
        return release_dir(self.spec.name, self.hash)

    @property
    def unit(self) -> str:
        """Text of the systemd unit."""
        return self.files[unit_name(self.spec.name)]

    @property
    def sums(self) -> str:
        """Text of SHA256SUMS over all files."""
        return sums_of(self.files)


def build_release(spec: EndpointSpec, endpoint: EndpointSettings, site: Path) -> Release:
    """Render every file of a release from the templates of a site. Raises SettingsError when one lacks a value."""
    drafted = _render_files(spec, endpoint, site)
    if spec.key_option and keyed_dir(spec.name) not in drafted["before-start"]:
        text = (
            "templates/before-start.j2 is older than api_key, and leaves the key out; next: rackwright init --update ."
        )
        raise SettingsError(text, code="RW0508")
    digest = hash_of(drafted)
    return Release(spec, digest, {name: text.replace(SELF, digest) for name, text in drafted.items()})


def hash_of(drafted: Mapping[str, str]) -> str:
    """Return a release's hash: 12 hexadecimal digits of the SHA-256 of its SHA256SUMS, made with SELF as a stand-in."""
    return _sha256(sums_of(drafted))[:12]


def sums_of(files: Mapping[str, str]) -> str:
    """Text of a SHA256SUMS, sorted by name."""
    return "".join(f"{_sha256(text)}  {name}\n" for name, text in sorted(files.items()))


def facts_of(spec: EndpointSpec, release: str) -> dict[str, Any]:
    """Return the contents of spec.json: its format, the release, the serving part, and its hash."""
    return {"format": FORMAT, "hash": release, "serving": spec.serving_hash, **spec.as_json()}


def _short_digest(image: str) -> str:
    return image.rpartition("@")[2].removeprefix("sha256:")[:12]


def _taken_anew(endpoint: EndpointSettings) -> list[int]:
    """Ports of the host's own network at which the endpoint's processes listen only where no connection stands."""
    if endpoint.engine_kind != "tensorrt-llm" or endpoint.network != "host":
        return []
    ports = launch_ports(endpoint)
    return [endpoint.port, *(range(ports[0], ports[0] + DAEMON_PORTS) if ports else ())]


def _render_files(spec: EndpointSpec, endpoint: EndpointSettings, site: Path) -> dict[str, str]:
    values = {
        "spec": spec,
        "hash": SELF,
        "release": release_dir(spec.name, SELF),
        "binding": binding_path(spec.name),
        "scratch": f"{endpoint_dir(spec.name)}/scratch",
        "caches": f"{endpoint_dir(spec.name)}/caches/{_short_digest(spec.image)}",
        "container": container_name(spec.name),
        "limits": limits(endpoint),
        "docker_host": DOCKER_HOST,
        "docker_misleading": " ".join(DOCKER_MISLEADING),
        "docker_run": systemd_command(spec.docker_run(SELF)),
        "keys": keys_dir(spec.name),
        "keyed": keyed_dir(spec.name),
        "taken_anew": _taken_anew(endpoint),
    }
    files = {
        spec.engine_file: spec.engine_yaml,
        **spec.files,
        "before-start": render("before-start.j2", site, **values),
        "wait-ready": render("wait-ready.j2", site, **values),
        unit_name(spec.name): render("endpoint.service.j2", site, **values),
        "health-url": f"{spec.health_url}/health\n",
        VERIFIED: host_script("verified", needs=NEEDS, records=MANIFESTS, marks=ENCODING_MARKS),
        NEEDS: "".join(f"{kind} {name}\n" for kind, name in _needs(spec)),
        "spec.json": json.dumps(facts_of(spec, SELF), indent=1) + "\n",
    }
    return files | (_member_files(spec, endpoint) if spec.members > 1 else {})


def _member_files(spec: EndpointSpec, endpoint: EndpointSettings) -> dict[str, str]:
    values: dict[str, str | int] = {
        "url": spec.health_url,
        "model": spec.served_name,
        "line_port": endpoint.group_port + 1,
        "launch_port": launch_port(endpoint) or "",
        "grace": endpoint.group_grace,
        "load_timeout": endpoint.load_timeout,
        "stop_timeout": endpoint.stop_timeout,
    }
    files = member_files(spec.name, release_dir(spec.name, SELF), values)
    return files | (launch_files() if launch_port(endpoint) else {})


def _needs(spec: EndpointSpec) -> Iterator[tuple[str, str]]:
    yield "image", spec.image
    yield from (("path", mount.source) for mount in spec.mounts if not mount.writable)


def limits(endpoint: EndpointSettings) -> UnitLimits:
    """Return the unit's time limits from the endpoint's settings."""
    times = (endpoint.load_timeout, endpoint.stop_timeout, endpoint.restart_delay)
    return UnitLimits(endpoint.start_limit, *times, together=endpoint.size > 1)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
