"""Events of a switch while the host carries it out, taken in one by one. Pure.

Its other output is data: it is shown, and nothing is read from it.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any

from rackwright.messages import ReadingError, printable
from rackwright.plan.jobstream import PROGRESS, Event, Heard

PLAIN_LOG = re.compile(r"(?!\.)[0-9A-Za-z._-]{1,200}\.log")
"""Name of a kept log, without any folder."""
VARIANT = "variant"
COLOURS = {"proved": "green", "refused": "red", "warning": "yellow", "not measured": "yellow"}


@dataclass(frozen=True)
class ProofRow:
    """One answer of the proof, judged by the host."""

    name: str
    mark: str
    """proved, refused, warning or not measured"""
    text: str
    figure: float | None = None
    endpoint: str = ""
    """Empty where a job of an earlier version asked."""


@dataclass(frozen=True)
class Clocks:
    """Seconds from a failure until the proven release was started again, and until it was ready."""

    pointed: float
    serving: float


@dataclass(frozen=True)
class ShownLine:
    """A line to show, in a colour or none."""

    text: str
    colour: str = ""


@dataclass
class SwitchProgress:
    """A switch by its events up to now."""

    endpoint: str
    logs: str
    """Folder on the host with the logs of failed tries."""
    tried: str = "release"
    """The kind of trial, as a word; VARIANT for one that is measured and never kept."""
    refused: dict[str, str] = field(default_factory=dict)
    """Rows that stopped the release, with what was seen."""
    cause: str = ""
    """The kind of failure, in the host's term; empty when it is unknown."""
    taken: bool = False
    """True if this machine has met another process at the endpoint's port."""
    failure: str | None = None
    """The reason not to keep the release; None as long as it may be kept."""
    lost: str | None = None
    """The reason for which rolling back, or stopping, has failed too."""
    clocks: Clocks | None = None
    """Seconds that rolling back took; None as long as it has not succeeded."""
    retained_log: str | None = None
    """Name of the failed try's last log, in the folder `logs`."""
    not_admitted: str | None = None
    """The reason for which the ready hook has failed."""
    waits: bool = False
    """True if the host waits for the control machine's message now."""
    waited: bool = False
    """True if it ever did."""
    row: ProofRow | None = None
    """The row of the last event."""

    def hear(self, heard: Heard) -> ShownLine:
        """Take in an event, or a line that only is shown; returns what to show of it."""
        self.row = None
        if isinstance(heard, Event) and (handler := _TOLD.get(heard.kind)) is not None:
            return handler(self, heard.text)
        return ShownLine(heard if isinstance(heard, str) else heard.text)


def _hear_row(progress: SwitchProgress, text: str) -> ShownLine:
    row = progress.row = parse_row(text)
    of = f"{row.endpoint}: " if row.endpoint not in ("", progress.endpoint) else ""
    if row.mark == "refused" and progress.failure is None:
        progress.refused[f"{of}{row.name}"] = row.text
    return ShownLine(f"{row.mark}: {of}{row.name}: {row.text}", COLOURS.get(row.mark, ""))


def _hear_failed(progress: SwitchProgress, text: str) -> ShownLine:
    progress.failure = text.strip() or "it failed without a word"
    return ShownLine(f"{progress.failure}; not keeping this {progress.tried}", "yellow")


def _hear_cause(progress: SwitchProgress, text: str) -> ShownLine:
    progress.cause = text.strip()
    return ShownLine(f"the kind of failure, as the host reports it: {progress.cause}", "yellow")


def _hear_lost(progress: SwitchProgress, text: str) -> ShownLine:
    progress.lost = text.strip() or "it failed without a word"
    return ShownLine(f"and that failed too: {progress.lost}", "red")


def _hear_back(progress: SwitchProgress, text: str) -> ShownLine:
    pointed, serving = map(float, text.split())
    progress.clocks = Clocks(pointed, serving)
    return ShownLine(in_words(progress.clocks), "yellow")


def in_words(clocks: Clocks) -> str:
    """Return the two clocks of rolling back (DECISIONS 33)."""
    return f"pointing back took {clocks.pointed:.1f} s, serving again after {clocks.serving:.1f} s"


def _hear_kept(progress: SwitchProgress, text: str) -> ShownLine:
    folder, _, name = text.rpartition("/")
    # The control machine reads it as root: only a plain name, and only in the folder that it expects.
    if folder == progress.logs and PLAIN_LOG.fullmatch(name):
        progress.retained_log = name
    if progress.tried == VARIANT:
        return ShownLine(f"the log of this trial is kept on the host: {text}")
    return ShownLine(f"the log of the failed try is kept on the host: {text}")


def _hear_not_admitted(progress: SwitchProgress, text: str) -> ShownLine:
    progress.not_admitted = text.strip()
    return ShownLine(f"clients are not let in again: {progress.not_admitted}", "red")


def _hear_word(progress: SwitchProgress, text: str) -> ShownLine:
    progress.waits = progress.waited = True
    return ShownLine(
        f"basic proof passed: the rest of the gate has {int(text)} s, or the host rolls back automatically"
    )


def _hear_end(progress: SwitchProgress, text: str) -> ShownLine:
    outcome, _, reason = text.partition(" ")
    progress.failure = progress.failure or reason.strip() or None
    return ShownLine(f"the host has ended the switch: {outcome}")


def _hear_progress(_: SwitchProgress, text: str) -> ShownLine:
    return ShownLine(text)


_TOLD = {
    "row": _hear_row,
    "cause": _hear_cause,
    "failed": _hear_failed,
    "lost": _hear_lost,
    "back": _hear_back,
    "kept": _hear_kept,
    "not-admitted": _hear_not_admitted,
    "word": _hear_word,
    "end": _hear_end,
    PROGRESS: _hear_progress,
}


def parse_row(text: str) -> ProofRow:
    """Parse a row as the host's judge prints it. Raises ReadingError for other text."""
    try:
        fields: dict[str, Any] = json.loads(text)
        row, mark, sentence = (printable(str(fields[key])) for key in ("row", "mark", "seen"))
        return ProofRow(row, mark, sentence, _figure(fields.get("figure")), printable(str(fields.get("endpoint", ""))))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ReadingError(f"malformed proof row from the host: {text[:100]}", code="RW2401") from error


def _figure(value: Any) -> float | None:
    """Return a measured number. Raises ValueError for NaN and infinity, which JSON does not have."""
    if value is None:
        return None
    if not math.isfinite(figure := float(value)):
        raise ValueError(f"no figure: {figure}")
    return figure


CUT = "cut"
"""Outcome of a switch that was ended from outside, or by the end of its host: it was taken back."""


@dataclass(frozen=True)
class LastSwitch:
    """The end of an endpoint's last switch, by the host's record."""

    release: str
    outcome: str
    """committed, rolled-back, stopped, lost, not-switched, not-committed, or CUT"""
    time: str
    """By the host's clock."""
    reason: str

    def against(self, release: str) -> str:
        """Return a remark on another try of a release that has failed here; empty without a remark."""
        if release != self.release or not self.reason:
            return ""
        return f"; it was tried here at {self.time}: {self.reason}"
