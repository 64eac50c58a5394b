"""Receivers that the settings of hosts name, each once. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from rackwright.settings.host_settings import HostSettings


def targets(settings: Iterable[HostSettings]) -> list[HostSettings]:
    """Return one host's settings for each command or webhook that these hosts notify."""
    found: dict[tuple[object, ...], HostSettings] = {}
    for one in settings:
        if (notify := one.notify).is_set:
            found.setdefault((notify.command, notify.url, notify.header, notify.form), one)
    return list(found.values())
