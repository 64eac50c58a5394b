"""Several hosts in few words. Pure."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN = 8
"""Host names that are written out."""


def hosts_text(hosts: Sequence[str]) -> str:
    """`gpu07`, or `38 hosts (gpu01, gpu02, … and 30 more)`."""
    if len(hosts) == 1:
        return hosts[0]
    more = f", … and {len(hosts) - SHOWN} more" if len(hosts) > SHOWN else ""
    return f"{len(hosts)} hosts ({', '.join(hosts[:SHOWN])}{more})"
