"""Checks of the rights and limits of the endpoints' containers."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.concerns.preflight.row import Case, Check, gib
from rackwright.engines.rights import missing

Verdicts = Iterator[tuple[bool, str, str]]
_UNITS = {"m": 2**20, "g": 2**30}


def capabilities(case: Case) -> Verdicts:
    """Check for capabilities that a backend is known to need and the settings drop."""
    for name, endpoint in case.endpoints.items():
        for need in missing(endpoint, case.settings.hardware):
            text = f"endpoint {name} has no {need.capability}: {need.why} ({need.source})"
            yield False, text, f"container.add_capabilities: [{need.capability}]"


def shared_memory(case: Case) -> Verdicts:
    """Check the size of an endpoint's private /dev/shm, which uses the host's memory."""
    total = case.machine.number("MemTotal")
    sizes = {
        name: endpoint.container.shm_size for name, endpoint in case.endpoints.items() if endpoint.container.shm_size
    }
    if total is None or not sizes:
        return
    size = sum(int(text[:-1]) * _UNITS[text[-1]] for text in sizes.values())
    shown = f"{gib(size)} for {', '.join(sizes)}, of {gib(total * 1024)} of memory"
    yield size <= total * 1024 / 2, shown, "lower container.shm_size: together at most half of the host's memory"


RIGHTS = (
    Check("capabilities", "warn", capabilities, "RW3160"),
    Check("shared memory", "stop", shared_memory, "RW3161"),
)
