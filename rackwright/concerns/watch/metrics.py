"""Metrics of the host as a file. Pure."""

from __future__ import annotations

from rackwright.settings.host_settings import HostSettings


def metrics_files(_: HostSettings) -> dict[str, str]:
    """Return its files by path."""
    return {}
