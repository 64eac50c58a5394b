"""The last diagnosis of a host, as the host keeps it, and whether DCGM is installed there. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rackwright.concerns.diagnosis.report import LONGEST, Report, Verdict, parse_report
from rackwright.concerns.inflate import inflate
from rackwright.messages import ReadingError, printable
from rackwright.paths import STATE
from rackwright.plan.reading import decode, pairs, whole_number

KEPT = f"{STATE}/diagnosis"
"""File with the last diagnosis: `KEY=VALUE` lines, and dcgmi's report, packed."""
MOST = 4 << 20
"""Most bytes of a report: one of eight GPUs at level 3 has some 30 KiB."""
ENDED = {"124": "dcgmi took longer than it may", "127": "dcgmi could not be started"}
"""Meaning of exit statuses of the shell's and of `timeout`."""


@dataclass(frozen=True)
class HostDiagnosis:
    """One run of `dcgmi diag`."""

    level: int
    boot: str
    """The host's boot in which it ran."""
    at: int
    """Second since 1970."""
    seconds: int
    report: Report

    @property
    def verdict(self) -> Verdict:
        """Return the report's verdict."""
        return self.report.verdict

    @property
    def name(self) -> str:
        """Return what ran, for people."""
        return f"dcgmi diag -r {self.level}"

    @property
    def reason(self) -> str:
        """Return why it failed, in a line; empty unless it did."""
        rows = self.report.rows("fail")
        more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
        return f"{self.name}: {rows[0]}{more}" if rows else ""


@dataclass(frozen=True)
class SeenDiagnosis:
    """The dcgmi of a host, if it has one, and its last diagnosis."""

    installed: bool = False
    last: HostDiagnosis | None = None


def seen_in(rows: Iterable[tuple[str, str]]) -> SeenDiagnosis:
    """Return it from the lines of a reading, each as its first word and the others."""
    first = dict(rows)
    text = first.get("diagnosis")
    return SeenDiagnosis("dcgmi" in first, None if text is None else parse_kept(decode(text)))


def parse_kept(text: str) -> HostDiagnosis:
    """Parse the file. What cannot be read of it is a diagnosis without results: no host is unreadable by it."""
    values = pairs(text)
    level, at, seconds = (whole_number(values.get(key)) or 0 for key in ("level", "at", "seconds"))
    return HostDiagnosis(level, values.get("boot", ""), at, seconds, _report(values))


def _report(values: Mapping[str, str]) -> Report:
    try:
        return parse_report(inflate(values.get("report", ""), MOST).decode(errors="replace"))
    except ReadingError as error:
        message = printable(" ".join(_decoded(values.get("errors", "")).split()))[:LONGEST]
        status = values.get("status", "?")
        return Report(
            error=f"{ENDED.get(status, f'{error.text}; it ended with {status}')}{f': {message}' if message else ''}"
        )


def _decoded(text: str) -> str:
    try:
        return decode(text)
    except ReadingError:
        return ""
