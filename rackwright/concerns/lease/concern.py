"""The lease of a host: one writer at a time, by a number that only rises. Values, parsing and texts; pure.

A host stores the fence (the last number issued, which survives a reboot) and, while a run writes, the lease.
Its times are seconds of the host's own monotonic clock, so setting the clock cannot end it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from rackwright.hostside import host_script
from rackwright.messages import ReadingError
from rackwright.paths import RUN, STATE
from rackwright.plan.concern import Concern
from rackwright.plan.reading import decode, lines_of, pairs, whole_number
from rackwright.settings.host_settings import HostSettings

LEASE = f"{RUN}/lease"
LAST_NUMBER = f"{STATE}/fence"
TTL = 120
"""Seconds after which a lease that is not renewed has ended."""
BREAK = "rackwright lease break"
"""The purpose of a lease that ends another; on hosts."""
BREAKS = (BREAK, "rackwright unlock")
"""The same, and the purpose that versions before 0.2.0 wrote."""


@dataclass(frozen=True)
class LeaseHolder:
    """The writer: a user at a machine for a purpose, and the process that writes.

    `place` is the scope of `pid`: machine, boot and process namespace. Empty: the process cannot be checked.
    """

    user: str
    machine: str
    purpose: str
    place: str = ""
    pid: int = 0
    started: int = 0
    """The start of the process, in its machine's own ticks."""


@dataclass(frozen=True)
class Lease:
    """A lease as it is stored on a host."""

    number: int
    run: str
    """Random text of the run that holds it: numbers start again after a teardown."""
    holder: LeaseHolder
    taken: int
    expires: int

    @property
    def id(self) -> str:
        """The id that a command must present to be executed."""
        return f"{self.number}.{self.run}"


@dataclass(frozen=True)
class SeenLease:
    """The reading of a host: its fence, its clock (seconds since its start), and the lease, live or not."""

    last_number: int = 0
    uptime: int = 0
    lease: Lease | None = None

    @property
    def live(self) -> Lease | None:
        """The lease, unless it has ended."""
        lease = self.lease
        return lease if lease is not None and lease.taken <= self.uptime < lease.expires else None

    @property
    def age(self) -> int:
        """Seconds since the lease was taken; 0 without one."""
        return max(0, self.uptime - self.lease.taken) if self.lease else 0

    @property
    def remaining(self) -> int:
        """Seconds until the lease ends unless it is renewed; 0 without a live one."""
        return self.live.expires - self.uptime if self.live else 0


def _read(_: HostSettings) -> str:
    return read_script()


def read_script() -> str:
    """Return the script that prints fence, clock and lease; it changes nothing."""
    return host_script("lease_read", lease=LEASE, fence=LAST_NUMBER)


def parse_seen(lines: Iterable[str]) -> SeenLease:
    """Parse the output of `read_script`. An invalid lease counts as one that has ended."""
    values = pairs("\n".join(lines))
    try:
        text = decode(values.get("lease", ""))
    except ReadingError:
        text = ""
    return SeenLease(_number(values.get("fence", "")), _number(values.get("uptime", "")), parse_lease(text))


def parse_lease(text: str) -> Lease | None:
    """Parse a lease file's content; None when it is missing."""
    if not text.strip():
        return None
    values = pairs(text)
    number, _, run = values.get("id", "").partition(".")
    holder = LeaseHolder(
        user=values.get("user", "unknown"),
        machine=values.get("machine", "an unknown machine"),
        purpose=values.get("purpose", ""),
        place=values.get("place", ""),
        pid=_number(values.get("pid", "")),
        started=_number(values.get("started", "")),
    )
    return Lease(_number(number), run, holder, _number(values.get("taken", "")), _number(values.get("expires", "")))


def _number(text: str) -> int:
    return whole_number(text) or 0


LEASED: Concern[None, SeenLease] = Concern(
    name="lease",
    read=_read,
    parse=lambda output: parse_seen(lines_of(output)),
    wanted=lambda _settings, _reading: None,
    changes=lambda _wanted, _seen: [],
    takes=frozenset(),
)


def whose(reading: SeenLease, now: datetime) -> str:
    """Return the holder of the lease, its purpose and its start; a placeholder without one.

    now: this machine's time, with its zone, at which the host was read.
    """
    if reading.lease is None:
        return "no run"
    holder = reading.lease.holder
    since = now - timedelta(seconds=reading.age)
    purpose = holder.purpose or "no purpose given"
    return f"{holder.user}@{holder.machine} ({purpose}) since {since:%H:%M:%S}, {span(reading.age)} ago"


def span(seconds: int) -> str:
    """Return a time for people: "40 s", "3 min 5 s", "2 h 10 min"."""
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"
