"""The format of spec.json: two versions of Rackwright that write to one host would undo each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackwright.concerns.endpoint.container import FORMAT
from rackwright.plan.reading import whole_number

_KEYS = frozenset({"hash", "serving", "image", "address", "port", "mounts", "served_name"})
WAY_OUT = "pip install --upgrade CHECKOUT, the newer one or its wheel"
"""The next command where a newer version wrote an endpoint."""


def format_of(spec: Mapping[str, Any]) -> int:
    """Return the format of a spec.json; one that was edited by hand counts as this version's, and is written again."""
    found = spec.get("format")
    return found if isinstance(found, int) and found > FORMAT else FORMAT


def readable(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a spec.json that this version reads, or nothing."""
    whole = format_of(spec) == FORMAT and spec.keys() >= _KEYS and whole_number(spec["port"]) is not None
    return spec if whole else {}


def foreign(found: int) -> str:
    """Return why an endpoint of a newer format is left alone; empty for this version's format."""
    if found == FORMAT:
        return ""
    return f"a newer Rackwright wrote its release: spec.json has format {found}, this one reads {FORMAT}"


def refusal(endpoint: str, found: int) -> str:
    """Return the sentence that refuses to touch an endpoint of another format."""
    return f"endpoint {endpoint}: {foreign(found)}; next: {WAY_OUT}"
