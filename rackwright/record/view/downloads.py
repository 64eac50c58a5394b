"""The downloads of a run: how far each host and all of them are, how fast, what is stalled, and their curve. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rackwright.messages import few
from rackwright.record.view.blame import clock
from rackwright.record.view.timeline import DownloadSpan, HostTimeline, Timeline

BINS = 120
"""Parts of a run's time by which the fleet's rate is drawn."""
LEAST_BIN = 1.0
"""Seconds of such a part at least: a host says every second how far it is, at most."""
MIB, GIB = 1 << 20, 1 << 30


@dataclass(frozen=True)
class FleetDownloads:
    """The downloads that are under way, of all hosts."""

    hosts: int
    done: int
    total: int
    rate: float
    """Bytes a second."""
    remaining: float | None
    """Seconds; None where no rate is known yet."""
    stalled: tuple[str, ...]
    """Hosts of which a download gets no byte, with the seconds since then."""

    def __str__(self) -> str:
        where = f" on {self.hosts} hosts" if self.hosts > 1 else ""
        parts = [f"{size_text(self.done)} of {size_text(self.total)}{where}, {rate_text(self.rate)}"] * bool(self.total)
        seconds = self.remaining or 0.0
        parts += [f"about {clock(round(seconds))} to go"] if seconds >= 1 else []
        parts += [f"stalled: {few(self.stalled)}"] if self.stalled else []
        return f"downloads: {', '.join(parts)}"


def fleet_downloads(timeline: Timeline, now: float) -> FleetDownloads | None:
    """Return the downloads under way; None where there is nothing to say of any. now: seconds since 1970."""
    busy = [host for host in timeline.hosts.values() if any(map(_tells, host.fetching))]
    if not busy:
        return None
    fetches = [fetch for host in busy for fetch in host.fetching]
    done, total = (sum(getattr(one, key) or 0 for one in fetches) for key in ("done", "total"))
    rate = sum(one.rate or 0.0 for one in fetches if one.stalled_since is None)
    stalled = tuple(f"{host.name} ({clock(seconds)})" for host in busy if (seconds := stalled_for(host, now)))
    return FleetDownloads(len(busy), done, total, rate, _remaining(fetches, total - done, rate), stalled)


def _tells(fetch: DownloadSpan) -> bool:
    return fetch.total is not None or fetch.stalled_since is not None


def _remaining(fetches: Iterable[DownloadSpan], missing: int, rate: float) -> float | None:
    """Return the seconds of the slowest, or of all at their common rate where hosts queue for the same line."""
    each = [one.remaining for one in fetches if one.remaining is not None]
    return max([*each, missing / rate]) if rate and each else None


def stalled_for(host: HostTimeline, now: float) -> float:
    """Return the seconds for which a download of a host has got no byte; 0 while all do."""
    since = [one.stalled_since for one in host.fetching if one.stalled_since is not None]
    return max(0.0, now - min(since)) if since else 0.0


def to_go(host: HostTimeline) -> str:
    """Return how long a host's downloads take, to follow its message; empty where that is not known."""
    seconds = [one.remaining for one in host.fetching if one.remaining is not None]
    return f", about {clock(round(max(seconds)))} to go" if max(seconds, default=0.0) >= 1 else ""


# -- the curve


@dataclass(frozen=True)
class Curve:
    """One host's downloads: bytes that had arrived, by seconds since the run's begin."""

    host: str
    points: tuple[tuple[float, int], ...]


def curves(timeline: Timeline) -> list[Curve]:
    """Return the curve of each host of which bytes are known, in inventory order."""
    began = timeline.began or 0.0
    found = []
    for host in timeline.hosts.values():
        fetches = [one for one in host.fetches.values() if len(one.points) > 1]
        times = sorted({at for one in fetches for at, _ in one.points})
        points = tuple((round(at - began, 1), sum(_at(one.points, at) for one in fetches)) for at in times)
        found += [Curve(host.name, points)] if points else []
    return found


def _at(points: Sequence[tuple[float, int]], at: float) -> int:
    """Return the bytes at a time, between two points by a straight line."""
    number = bisect_right(points, at, key=lambda point: point[0])
    if number in (0, len(points)):
        return points[-1][1] if number else 0
    (start, low), (end, high) = points[number - 1], points[number]
    return round(low + (high - low) * (at - start) / (end - start))


def fleet_rate(timeline: Timeline) -> list[tuple[float, float]]:
    """Return bytes a second of all hosts together, by seconds since the run's begin."""
    segments = [pair for curve in curves(timeline) for pair in zip(curve.points, curve.points[1:], strict=False)]
    if not segments or timeline.duration <= 0:
        return []
    width = max(LEAST_BIN, timeline.duration / BINS)
    bins = [0.0] * (int(timeline.duration / width) + 1)
    for (start, low), (end, high) in segments:
        for number in range(int(start / width), min(len(bins), int(end / width) + 1)):
            overlap = min(end, (number + 1) * width) - max(start, number * width)
            bins[number] += max(0.0, overlap) / max(end - start, 1e-9) * (high - low) / width
    return [(round(number * width, 1), rate) for number, rate in enumerate(bins)]


def size_text(size: float) -> str:
    """Return bytes for people."""
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size / MIB:.1f} MiB"


def rate_text(rate: float) -> str:
    """Return bytes a second for people."""
    return f"{rate / GIB:.2f} GiB/s" if rate >= GIB else f"{rate / MIB:.1f} MiB/s"
