"""The step that waits for a host with another driver, and takes it back where that fails. Plain values."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.concerns.endpoint.switch.steps import HostReturn
from rackwright.plan.change import Job, Shell


@dataclass(frozen=True)
class DriverReturn(HostReturn):
    """The end of a restart with another driver: it counts when the driver, its GPUs and the endpoints answer."""

    version: str
    old: str
    """The driver before; empty when there was none."""
    gpus: int
    """GPUs that the host had before, and must have again; 0 when that is not known."""
    undo: Job | None = None
    """Puts the driver of before back and restarts once more; None where there is no way back."""
    checks: tuple[Job, ...] = ()
    """Jobs that must end well before the endpoints are asked, such as a diagnosis of the GPUs."""
    together: bool = False
    """True for a host that serves with others: none of them goes back alone."""
    domain: Shell | None = None
    """Starts the IMEX of a host whose GPUs are reached from others, and on the head waits until all have joined."""
