"""The look at each endpoint, and what is looked at. Pure."""

from __future__ import annotations

from rackwright.settings.host_settings import HostSettings


def look_files(_: HostSettings) -> dict[str, str]:
    """Return its files by path."""
    return {}
