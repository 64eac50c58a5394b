"""A host's endpoints as they should be. Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rackwright.concerns.endpoint.binding import Binding
from rackwright.concerns.endpoint.release.concern import Unresolved
from rackwright.concerns.endpoint.release.files import Release
from rackwright.concerns.endpoint.why_switch import Aim
from rackwright.concerns.marks import Mark
from rackwright.plan.change import Owned
from rackwright.settings.group import Group
from rackwright.settings.host_settings import NOWHERE, EndpointSettings


@dataclass(frozen=True)
class WantedEndpoint:
    """One endpoint as it should be."""

    settings: EndpointSettings
    release: Release | Unresolved
    keep_releases: int
    binding: Binding
    gpus: frozenset[str] = frozenset()
    """UUIDs of all GPUs that the host has today."""
    adopt: bool = False
    group: Group | None = None
    """The hosts that serve it together."""
    only: tuple[str, ...] = ()
    """The networks that reach its port, where it is closed to all but the gateways."""

    site: Path = NOWHERE
    """The site's folder, for its file of questions."""

    def aim(self, release: Release) -> Aim:
        """Return what the endpoint should serve."""
        return Aim(release, self.binding, self.adopt)


@dataclass(frozen=True)
class WantedEndpoints:
    """All endpoints as they should be, and the boot units' text."""

    endpoints: Mapping[str, WantedEndpoint]
    boot_units: Mapping[str, str]
    owned: frozenset[Owned] = frozenset()
    """The ownership record."""
    sets_apart: bool = False
    """True if hand-made units under Rackwright's names are to be moved away; otherwise they are refused."""
    drop_ins: tuple[str, ...] = ()
    """Drop-ins of our units that the owner means, by name or path."""
    drained: bool = False
    """True if an operator has drained the host: its endpoints are left as they are."""
    ended_marks: tuple[Mark, ...] = ()
    """Marks of runs that have ended."""
