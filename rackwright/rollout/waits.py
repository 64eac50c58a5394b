"""The waits of a rollout, in words, before anybody is asked for yes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rackwright.settings.host_settings import EndpointSettings, HostSettings


def waits_of(settings: Sequence[HostSettings], given: Mapping[str, Any]) -> list[str]:
    """Return the sentences on a rollout's waves and waits. given: settings that the command line overrides."""

    def rollout(key: str) -> str:
        name = f"rollout.{key}"
        values = [given[name]] if name in given else [getattr(one.rollout, key) for one in settings]
        return _range(values)

    wave, down, bake = rollout("wave"), rollout("max_unavailable"), rollout("bake")
    waves = (
        f"canaries go first, then waves of {wave} (rollout.wave); of the hosts of a group or rack that serve, {down} "
        "may be down (rollout.max_unavailable)"
    )
    endpoints = [endpoint for one in settings for endpoint in one.all_endpoints.values()]
    return [waves, *([_waits(endpoints, bake)] if endpoints else [])]


def _waits(endpoints: Sequence[EndpointSettings], bake: str) -> str:
    drain, load = max(one.drain_timeout for one in endpoints), max(one.load_timeout for one in endpoints)
    return (
        f"it waits up to {drain} s for open requests (drain_timeout), up to {load} s for an engine to load "
        f"(load_timeout), and {bake} s after each wave but the last (rollout.bake)"
    )


def _range(values: Iterable[Any]) -> str:
    """Return one value, or all that hosts have."""
    return " or ".join(dict.fromkeys(map(str, values)))
