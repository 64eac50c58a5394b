"""The pause of the watch of engines on a host: until when, by whom and why. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.messages import printable
from rackwright.plan.reading import pairs

LONGEST = 300


@dataclass(frozen=True)
class Pause:
    """A pause that has not ended yet."""

    seconds: int
    """Until its end."""
    who: str
    reason: str

    def __str__(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"watch paused for another {self.seconds // 60} min by {self.who}{why}"


def parse_pause(text: str, uptime: float) -> Pause | None:
    """Parse the file of a pause; None without one and after its end. uptime: the host's, in seconds."""
    first, _, more = text.partition("\n")
    until = first.strip()
    if not until.isdecimal() or int(until[:12]) <= uptime:
        return None
    values = pairs(more)
    who, reason = (printable(values.get(key, ""))[:LONGEST] for key in ("who", "reason"))
    return Pause(int(int(until[:12]) - uptime), who or "an unknown user", reason)
