"""The format of spec.json: two versions of Rackwright that write to one host would undo each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackwright.plan.reading import whole_number
from rackwright.plan.spec import FORMAT

_KEYS = frozenset({"hash", "serving", "image", "address", "port", "mounts", "served_name"})
_FIRST = frozenset({"hash", "image", "gpus", "mounts"})
"""Keys of format 1, which did not say its number."""


def format_of(spec: Mapping[str, Any]) -> int:
    """The format that a spec.json has; one that was spoilt by hand counts as ours, and is written again."""
    found = spec.get("format", 1 if spec.keys() >= _FIRST else FORMAT)
    return found if isinstance(found, int) else FORMAT


def readable(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """A spec.json that this version reads, or nothing."""
    whole = format_of(spec) == FORMAT and spec.keys() >= _KEYS and whole_number(spec["port"]) is not None
    return spec if whole else {}


def foreign(found: int) -> str:
    """Why an endpoint of another format is left alone; empty for our own format."""
    if found == FORMAT:
        return ""
    who = "a newer" if found > FORMAT else "an older"
    return f"{who} Rackwright wrote its release: spec.json has format {found}, this one reads {FORMAT}"


def way_out(found: int) -> str:
    """The next command where an endpoint is of another format."""
    return "pip install --upgrade rackwright" if found > FORMAT else "rackwright teardown INVENTORY --limit HOST"


def refusal(endpoint: str, found: int) -> str:
    """The sentence that refuses to touch an endpoint of another format."""
    return f"endpoint {endpoint}: {foreign(found)}; next: {way_out(found)}"
