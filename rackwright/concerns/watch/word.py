"""The host's word: its socket. Pure."""

from __future__ import annotations

from rackwright.settings.host_settings import HostSettings


def word_files(_: HostSettings) -> dict[str, str]:
    """Return its files by path."""
    return {}
