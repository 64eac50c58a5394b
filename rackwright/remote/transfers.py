"""Models and images that hosts of a run take from each other: which of its hosts have ended their part in one."""

from __future__ import annotations

from dataclasses import dataclass, field

from rackwright.adapter.host import Host
from rackwright.plan.change import Job


@dataclass(frozen=True)
class Transfers:
    """The parts that have ended in this run, each by its host and the name of what is handed on.

    A host tells the others itself that it needs no more. One that failed before its part began, or that had ended it
    before another one listened, cannot: the run knows it.
    """

    ended: set[tuple[str, str]] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    """Hosts that failed in an operation in which others may still be waiting."""

    def end(self, host: str, transfer: str) -> None:
        """Note that the job of a host has ended, however it did."""
        if transfer:
            self.ended.add((host, transfer))

    def is_over(self, host: Host, job: Job) -> bool:
        """Return True if no host of the run will take from a job of this host again; False where none ever would."""
        active = {one.name for one in host.state.active_hosts} - self.failed
        waits = (name in active and (name, job.transfer) not in self.ended for name in job.takers)
        return bool(job.takers) and not any(waits)
