"""Versions of HAProxy that can do what the gateway's configuration asks. Pure."""

from __future__ import annotations

OLDEST = (2, 4)
"""The first version with `wait-for-body`, and with `json_query` for bodies that name their model."""
TOO_OLD = "RW2015"


def too_old(version: tuple[int, int]) -> str:
    """Return why this version of HAProxy cannot be a gateway, and the next step; empty if it can."""
    if version >= OLDEST:
        return ""
    return (
        f"HAProxy {version[0]}.{version[1]} of this host cannot be a gateway, which needs {OLDEST[0]}.{OLDEST[1]}; "
        "next: use a host with Debian 12 or Ubuntu 22.04, or newer"
    )
