"""The restart of a hung endpoint. Pure."""

from __future__ import annotations

from rackwright.settings.host_settings import HostSettings


def act_files(_: HostSettings) -> dict[str, str]:
    """Return its files by path."""
    return {}
