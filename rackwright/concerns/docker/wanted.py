"""Docker and the site's certificate authority as the settings want them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rackwright.messages import SettingsError
from rackwright.plan.change import Owned
from rackwright.plan.concern import HostReading
from rackwright.plan.ownership import RECORD
from rackwright.settings.host_settings import HostSettings


@dataclass(frozen=True)
class WantedDocker:
    """The wanted state, and the part of it that Rackwright already owns."""

    settings: HostSettings
    authority: str | None
    """PEM text of the site's certificate authority."""
    owned: frozenset[Owned]
    closes_ports: bool = True
    """True where deploy.py calls firewall() for the host: its drops want nft."""

    def names(self, kind: str) -> set[str]:
        """Return the names of one kind in the ownership record."""
        return {entry.name for entry in self.owned if entry.kind == kind}


def wanted(settings: HostSettings, reading: HostReading) -> WantedDocker:
    """Return settings, site authority and owned entries. Raises SettingsError for an unreadable authority."""
    # By name: firewall() itself reads Docker's concern.
    closes = reading.managed is None or "firewall" in reading.managed
    return WantedDocker(settings, _authority(settings), reading[RECORD], closes)


def _authority(settings: HostSettings) -> str | None:
    path = settings.paths.private_ca
    if path is None:
        return None
    file = settings.site / Path(path).expanduser()
    if file.exists() and not file.is_file():
        raise SettingsError(f"paths.private_ca: {path} cannot be read: it is not a file", code="RW2102")
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"paths.private_ca: {path} cannot be read: {error}", code="RW2102") from error
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise SettingsError(f"paths.private_ca: {path} holds no PEM certificate", code="RW2102")
    return text
