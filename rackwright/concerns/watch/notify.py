"""Messages about what the host found and did. Pure."""

from __future__ import annotations

from rackwright.settings.host_settings import HostSettings
from rackwright.settings.secret import Secret


def notify_files(_: HostSettings) -> dict[str, str | Secret]:
    """Return its files by path."""
    return {}
