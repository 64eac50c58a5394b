"""The end of a drain, as a job of the host says it (concerns/endpoint/switch/host/drain.sh). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rackwright.messages import counted

DRAINED = "drained"
"""Kind of the job's event, and of the record's."""
LONGEST = 9
"""Digits of a number that a host says."""


@dataclass(frozen=True)
class DrainEnd:
    """Requests that are open when an endpoint is stopped, and gateways that may still send some."""

    endpoint: str
    cut: int | None
    """None where the requests could not be counted."""
    seconds: int
    gone: tuple[str, ...] = ()
    """Gateways that had asked for the host's word earlier, and no longer did."""

    @property
    def fields(self) -> Mapping[str, Any]:
        """The values for the record."""
        return {**asdict(self), "gone": list(self.gone)}

    def __str__(self) -> str:
        cut = "an unknown number of requests" if self.cut is None else counted(self.cut, "request")
        gone = f"; not waited for: gateway {', '.join(self.gone)}, which no longer asks" if self.gone else ""
        return f"drained endpoint {self.endpoint} in {self.seconds} s; its stop cuts {cut}{gone}"


def parse_drain(text: str) -> DrainEnd | None:
    """Parse `ENDPOINT OPEN SECONDS GATEWAY...`; None for other text."""
    match text.split():
        case [endpoint, cut, seconds, *gone] if _is_number(seconds):
            return DrainEnd(endpoint, int(cut) if _is_number(cut) else None, int(seconds), tuple(gone))
    return None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= LONGEST
