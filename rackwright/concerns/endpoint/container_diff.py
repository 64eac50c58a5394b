"""Differences between two specs, in words for people. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackwright_engines.quick_yaml import load_yaml


def reasons(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return the changes from `old` to `new` (contents of spec.json), for example "kv_cache_config changed"."""
    if not old:
        return ""
    named = [
        f"{key} changed"
        for key in ("image", "argv", "environment", "mounts", "address", "port", "network", "models")
        if old.get(key) != new.get(key)
    ]
    return ", ".join(named + _engine(old.get("files", {}), new.get("files", {})))


def _engine(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    before, after = _merged(old), _merged(new)
    changed = [key for key in [*after, *before] if before.get(key) != after.get(key)]
    return [f"{key} changed" for key in dict.fromkeys(changed)]


def _merged(texts: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in texts.values():
        found |= load_yaml(text) or {}
    return found
