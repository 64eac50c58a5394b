"""A run's downloads in its report: a curve a host, the fleet's rate, and a row a download. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rackwright.record.view.blame import clock
from rackwright.record.view.downloads import curves, fleet_rate, rate_text, size_text
from rackwright.record.view.timeline import DownloadSpan, Timeline

WIDTH, HEIGHT = 1000, 160
"""Of a picture's own units; the page stretches it."""
HOSTS = 200
"""Curves that are drawn; of more hosts, every n-th one has one."""


@dataclass(frozen=True)
class CurveLine:
    """A curve as SVG has it."""

    name: str
    points: str


@dataclass(frozen=True)
class DownloadCharts:
    """Two pictures over the run's time, and the figures at their tops."""

    hosts: tuple[CurveLine, ...]
    most: str
    """Bytes of the host with the most."""
    rate: CurveLine
    fastest: str


@dataclass(frozen=True)
class DownloadRow:
    """One download of one host, for people."""

    host: str
    what: str
    size: str
    took: str
    rate: str
    stall: str
    """Its longest time without a byte."""


def charts(timeline: Timeline) -> DownloadCharts | None:
    """Return the pictures; None where the bytes of no download are known."""
    found, rates = curves(timeline), fleet_rate(timeline)
    top = max((value for one in found for _, value in one.points), default=0)
    fastest = max((value for _, value in rates), default=0.0)
    if not top or not fastest:
        return None
    shown = found[:: len(found) // HOSTS + 1]
    lines = tuple(CurveLine(one.host, _points(one.points, timeline.duration, top)) for one in shown)
    rate = CurveLine("all hosts", _points(rates, timeline.duration, fastest))
    return DownloadCharts(lines, size_text(top), rate, rate_text(fastest))


def _points(points: Sequence[tuple[float, float]], whole: float, top: float) -> str:
    return " ".join(f"{WIDTH * at / whole:.1f},{HEIGHT * (1 - value / top):.1f}" for at, value in points)


def rows(timeline: Timeline) -> list[DownloadRow]:
    """Return every download that has ended, the longest first."""
    hosts = timeline.hosts.values()
    found = [(host.name, one) for host in hosts for one in host.fetches.values() if one.end is not None]
    return [_row(host, one) for host, one in sorted(found, key=lambda pair: -_seconds(pair[1]))]


def _seconds(fetch: DownloadSpan) -> float:
    return (fetch.end or fetch.start) - fetch.start


def _row(host: str, fetch: DownloadSpan) -> DownloadRow:
    size = "" if fetch.total is None else size_text(fetch.total)
    rate = "" if fetch.mean_rate is None else rate_text(fetch.mean_rate)
    stall = clock(fetch.longest_stall) if fetch.longest_stall else ""
    return DownloadRow(host, fetch.title, size, clock(_seconds(fetch)), rate, stall)
