"""Progress of all downloads of a run together, in a line now and then, where lines stay on the screen."""

from __future__ import annotations

from dataclasses import dataclass, field

from rackwright.messages import few
from rackwright.record.progress import DOWNLOADING, STALLED, Movement, Progress, parse_line, to_go

EVERY = 30.0
"""Seconds between two lines."""
KEEPER = "hand-on-"
"""Begins the jobs of hosts that hand on what they have: they read, and download nothing."""
MIB, GIB = 1 << 20, 1 << 30


@dataclass
class RunningDownload:
    """The last that one job of a host has said of its bytes."""

    last: Progress
    movement: Movement = field(default_factory=Movement)
    still: float = 0.0
    """Seconds without a byte."""


@dataclass
class FleetProgress:
    """The downloads that are under way in a run, by host and job."""

    jobs: dict[tuple[str, str], RunningDownload] = field(default_factory=dict)
    last_line: float = float("-inf")

    def note(self, host: str, job: str, output_line: str, now: float) -> str:
        """Note a line of a job; return a line on all of them where it is time for one, else nothing.

        now: seconds of a clock that never runs backwards.
        """
        found = parse_line(output_line)
        if job.startswith(KEEPER) or found is None or found.phase != DOWNLOADING or found.total is None:
            return ""
        running = self.jobs.setdefault((host, job), RunningDownload(found))
        running.last, running.still = found, running.movement.still(found, now)
        if len({name for name, _ in self.jobs}) < 2 or now - self.last_line < EVERY:
            return ""
        self.last_line = now
        return self._line()

    def forget(self, host: str, job: str) -> None:
        """Forget a job that has ended, or that is no longer followed."""
        self.jobs.pop((host, job), None)

    def _line(self) -> str:
        found = [one.last for one in self.jobs.values()]
        done, total = (sum(getattr(one, key) or 0 for one in found) for key in ("done", "total"))
        rate = sum(one.rate or 0.0 for one in found)
        hosts = len({name for name, _ in self.jobs})
        stalled = list(dict.fromkeys(name for (name, _), one in self.jobs.items() if one.still >= STALLED))
        parts = [f"{_size(done)} of {_size(total)} on {hosts} hosts", f"{rate / MIB:.1f} MiB/s"]
        parts += [to_go((total - done) / rate)] if rate and total > done else []
        parts += [f"stalled: {few(stalled)}"] if stalled else []
        return f"downloads: {', '.join(parts)}"


def _size(count: int) -> str:
    return f"{count / GIB:.1f} GiB" if count >= GIB else f"{count / MIB:.1f} MiB"
