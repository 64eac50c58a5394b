"""Downloads that continue beside a host's later operations, until they are collected.

Each is a job of the host (plan/change.py), so it continues whatever becomes of this process; a thread, a greenlet under
pyinfra, shows what it says and keeps how it ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rackwright.adapter.concurrency import new_event, spawn
from rackwright.adapter.connection import beside
from rackwright.adapter.host import Host, say
from rackwright.adapter.run_context import part_of
from rackwright.messages import printable
from rackwright.plan.change import Job
from rackwright.remote.errors import StepFailedError
from rackwright.remote.jobs import raise_or_report, show_job
from rackwright.remote.transfers import Transfers

if TYPE_CHECKING:
    from rackwright.adapter.concurrency import Event

LAST_LINES = 6
"""Lines of a failed download that are repeated where it is collected."""


@dataclass
class Download:
    """One download that was begun."""

    job: Job
    alone: bool
    """True if no decision depends on what it brings."""
    earlier: tuple[Download, ...]
    """Those that it must come after."""
    runs: Event = field(default_factory=new_event)
    """Set once the host's job runs, or never will."""
    ended: Event = field(default_factory=new_event)
    failure: Exception | None = None
    output: deque[str] = field(default_factory=lambda: deque(maxlen=LAST_LINES))

    @property
    def is_cut_off(self) -> bool:
        """Return whether what it must come after has failed."""
        return any(one.failure is not None for one in self.earlier)


@dataclass(frozen=True)
class PendingDownloads:
    """Those of a run that were begun and not collected yet, by host."""

    by_host: dict[str, list[Download]] = field(default_factory=dict)


def under_way(host: Host) -> list[Download]:
    """Return what was begun on a host and not collected yet, in its order."""
    return part_of(host.state, PendingDownloads).by_host.setdefault(host.name, [])


def begin(host: Host, job: Job, alone: bool = False) -> None:
    """Have a host begin a download, behind those that the job must come after, and return."""
    queue = under_way(host)
    download = Download(job, alone, tuple(one for one in queue if one.job.name in job.after))
    queue.append(download)
    work = beside(host, lambda: _carry_out(host, download))
    spawn(work, f"{host.name} {job.name}")


def _carry_out(host: Host, download: Download) -> None:
    try:
        _follow(host, download)
    except Exception as error:  # raised again where it is collected
        download.failure = error
    finally:
        part_of(host.state, Transfers).end(host.name, download.job.transfer)
        download.runs.set()
        download.ended.set()


def _follow(host: Host, download: Download) -> None:
    job = download.job
    for other in download.earlier:
        # The host itself lets the one wait for the other's end, once it knows of both.
        other.runs.wait()
    if download.is_cut_off:
        return

    def show(text: str) -> None:
        download.output.append(printable(text))
        say(host, f"  {job.title}: {text}")

    ended = show_job(host, job, show, download.runs.set)
    if ended.status != 0:
        raise_or_report(host, job, "\n".join([f"{job.title}: {ended.text}:", *download.output]))


def collect(host: Host) -> Iterator[Download]:
    """Wait for all downloads of a host, in their order. One that only failed since another one did is left out."""
    queue = under_way(host)
    while queue:
        download = queue[0]
        download.ended.wait()
        queue.remove(download)
        if download.failure is not None and not isinstance(download.failure, StepFailedError):
            raise download.failure
        if not download.is_cut_off:
            yield download
