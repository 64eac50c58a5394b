"""A release: all files of one endpoint spec, in a folder named by the spec's hash. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackwright.paths import container_name, endpoint_dir, release_dir, unit_name
from rackwright.render import render, systemd_command
from rackwright.settings.model import EndpointSettings
from rackwright.spec import EndpointSpec

SUMS = "SHA256SUMS"


@dataclass(frozen=True)
class Limits:
    """Time limits of a unit, in seconds. The interval makes the start limit trip even after slow deaths."""

    starts: int
    start: int
    stop: int
    restart_delay: int

    @property
    def interval(self) -> int:
        """systemd's default of 10 s never trips on an engine that dies after eight minutes (DECISIONS 8)."""
        return self.starts * (self.start + self.stop + 15 + self.restart_delay)


@dataclass(frozen=True)
class Release:
    """The files of one release by name, and the unit among them."""

    spec: EndpointSpec
    files: Mapping[str, str]

    @property
    def hash(self) -> str:
        """The spec's hash, which names the folder."""
        return self.spec.hash

    @property
    def facts(self) -> dict[str, Any]:
        """What spec.json says: the spec and its hash."""
        return {"hash": self.spec.hash, **self.spec.as_json()}

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
        return "".join(f"{_sha256(text)}  {name}\n" for name, text in sorted(self.files.items()))


def build_release(spec: EndpointSpec, endpoint: EndpointSettings, site: Path) -> Release:
    """Render every file of a release from the templates of a site. Raises SettingsError when one lacks a value."""
    values = {
        "spec": spec,
        "release": release_dir(spec.name, spec.hash),
        "scratch": f"{endpoint_dir(spec.name)}/scratch",
        "container": container_name(spec.name),
        "limits": limits(endpoint),
        "docker_run": systemd_command(spec.docker_run()),
    }
    files = {
        spec.engine_file: spec.engine_yaml,
        "before-start": render("before-start.j2", site, **values),
        "wait-ready": render("wait-ready.j2", site, **values),
        unit_name(spec.name): render("endpoint.service.j2", site, **values),
        "health-url": f"{spec.health_url}/health\n",
        "spec.json": json.dumps(Release(spec, {}).facts, indent=1) + "\n",
    }
    return Release(spec, files)


def limits(endpoint: EndpointSettings) -> Limits:
    """The unit's time limits from the endpoint's settings."""
    return Limits(endpoint.start_limit, endpoint.load_timeout, endpoint.stop_timeout, endpoint.restart_delay)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
