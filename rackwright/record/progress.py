"""Progress of a job, from the lines that it prints, and the ones that are worth an event of the record. Pure."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rackwright.plan.jobstream import PROGRESS, Event, Heard

DOWNLOADING, VERIFYING, DRAINING = "downloading", "verifying", "draining"
LOADING, PROVING, ROLLING_BACK = "loading", "proving", "rolling back"
STEP = 0.02
"""Share by which a bar must grow before it is reported again: at most fifty events a download."""
LEAST, MOST = 1.0, 15.0
"""Seconds between two events of one job, unless its phase changes."""

LINES = 15
"""Lines of a download, one in two seconds, by whose rates the time that remains is estimated."""
SELDOM = 30.0
"""Seconds between two lines of how far a job is, where lines stay on the screen."""

STALLED = 10.0
"""Seconds without a byte after which a download is reported as stalled; what ends it is `downloads.stall_timeout`."""

_UNITS = {"MiB": 1 << 20, "GiB": 1 << 30}
_BYTES = re.compile(r"([\d.]+) (MiB|GiB) of ([\d.]+) (MiB|GiB) \(\d+%\)(?:, ([\d.]+) MiB/s)?")
_LAYERS = re.compile(r"layers: (\d+) of (\d+) fetched, (\d+) unpacked, (\d+) MiB in flight")
_VERIFYING = "verifying"
_HOW_FAR = ("verifying ", "draining: ", "loading, ")
_PHASES = {
    "verifying ": VERIFYING,
    "draining: ": DRAINING,
    "switching to ": LOADING,
    "loading, ": LOADING,
    "ready after ": PROVING,
    "rolling back to ": ROLLING_BACK,
}


@dataclass(frozen=True)
class Progress:
    """One line of a job, read. `part` is between 0 and 1; None when the line does not tell."""

    phase: str
    part: float | None = None
    done: int | None = None
    """Bytes; None where the line does not tell, as of layers of an image."""
    total: int | None = None
    rate: float | None = None
    """Bytes a second, as the line says."""
    state: str = ""
    """The part of an image's download that changes as long as bytes arrive; empty where that is not a question."""


def parse_line(output_line: str) -> Progress | None:
    """Return what a job's line says of how far it is; None when it is about something else."""
    text = output_line.strip()
    if found := _BYTES.search(text):
        return _of_bytes(text, *found.groups())
    if found := _LAYERS.match(text):
        fetched, layers, unpacked = int(found[1]), int(found[2]), int(found[3])
        # Unpacking says nothing for minutes: only what is still to be fetched can stall.
        state = found[0] if fetched < layers else ""
        return Progress(DOWNLOADING, _part(fetched + unpacked, 2 * layers), state=state)
    return next((Progress(phase) for start, phase in _PHASES.items() if text.startswith(start)), None)


def _of_bytes(text: str, done: str, unit: str, total: str, whole: str, rate: str | None) -> Progress:
    phase = VERIFYING if text.startswith(_VERIFYING) else DOWNLOADING
    here, all_of_it = float(done) * _UNITS[unit], float(total) * _UNITS[whole]
    speed = None if rate is None else float(rate) * _UNITS["MiB"]
    return Progress(phase, _part(here, all_of_it), round(here), round(all_of_it), speed)


def _part(done: float, total: float) -> float | None:
    return round(min(1.0, done / total), 3) if total > 0 else None


class Meter:
    """Keeps the events of one job few: a line is for a new phase, a bar that has grown, or time that has passed."""

    def __init__(self) -> None:
        self.last: Progress | None = None
        self.when = 0.0
        self._moves = Movement()
        self._rates: list[float] = []
        self._was_stalled = False

    def progress_fields(self, output_line: str, now: float) -> Mapping[str, Any] | None:
        """Return the fields of the event for a line, or None. now: seconds of a clock that never runs backwards."""
        found = parse_line(output_line)
        if found is None:
            return None
        still = self._moves.still(found, now)
        self._rates += [found.rate] if found.rate is not None else []
        stalled = still >= STALLED
        if not self._is_news(found, now) and stalled == self._was_stalled:
            return None
        self.last, self.when, self._was_stalled = found, now, stalled
        rate = round(sum(self._rates) / len(self._rates)) if self._rates else None
        self._rates.clear()
        return {
            "phase": found.phase,
            "part": found.part,
            "text": output_line.strip()[:200],
            "bytes": found.done,
            "of": found.total,
            "rate": rate,
            "stalled": round(still) if stalled else None,
        }

    def _is_news(self, found: Progress, now: float) -> bool:
        if self.last is None or found.phase != self.last.phase:
            return True
        grown = (found.part or 0.0) - (self.last.part or 0.0)
        passed = now - self.when
        return passed >= MOST or (passed >= LEAST and (grown >= STEP or found.part == 1.0 != self.last.part))


class Movement:
    """Tells for how long no byte of a download has come."""

    def __init__(self) -> None:
        self._last: Progress | None = None
        self._since: float | None = None

    def still(self, found: Progress, now: float) -> float:
        """Return the seconds up to a line without a byte; 0 where bytes came, or the line does not tell."""
        moves = found.rate != 0.0 and (not found.state or self._last is None or found.state != self._last.state)
        if moves or found.phase != DOWNLOADING or found.part == 1.0:
            self._since = None
        elif self._since is None:
            self._since = now
        self._last = found
        return now - self._since if self._since is not None else 0.0


class TimeToGo:
    """Adds to a download's lines how long it takes still, by the rates of the last of them, or that it is stalled."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._rates = deque[float](maxlen=LINES)
        self._clock, self._moves = clock, Movement()
        self.stalled = False
        """True where the last line was of a download that gets no byte."""

    def with_remaining(self, output_line: str) -> str:
        """Return the line, with the time that remains where it tells bytes and a rate, or since when no byte came."""
        found = parse_line(output_line)
        still = self._moves.still(found, self._clock()) if found else 0.0
        self.stalled = still >= STALLED
        if self.stalled:
            return f"{output_line}, stalled: no byte for {still:.0f} s"
        if found is None or found.rate is None or found.total is None or found.done is None:
            return output_line
        self._rates.append(found.rate)
        rate, missing = sum(self._rates) / len(self._rates), found.total - found.done
        return f"{output_line}, {to_go(missing / rate)}" if rate and missing > 0 else output_line


def to_go(seconds: float) -> str:
    """Return an estimate for people, as coarse as it is."""
    if seconds < 100:
        return f"about {max(1, round(seconds))} s to go"
    return f"about {round(seconds / 60)} min to go" if seconds < 6000 else f"about {seconds / 3600:.1f} h to go"


class Calm:
    """A filter of a job's words: all are printed, but its progress only now and then.

    A download says so every few seconds, and eight hosts download at a time; the live view renews one line a host.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._last = clock, dict[tuple[str, bool], float]()

    def says(self, heard: Heard, stalled: bool = False) -> bool:
        """Return whether this is printed. stalled: it is of a download that gets no byte, whose begin is news."""
        phase = _repeated(heard.text) if isinstance(heard, Event) and heard.kind == PROGRESS else None
        if phase is None:
            return True
        now, kind = self._clock(), (phase, stalled)
        if now - self._last.get(kind, float("-inf")) < SELDOM:
            return False
        self._last[kind] = now
        return True


def _repeated(output_line: str) -> str | None:
    """Return the phase of which a line says only how far it is; None for news, as a stall is, or a try that begins."""
    found = parse_line(output_line)
    again = found is not None and (found.part is not None or output_line.strip().startswith(_HOW_FAR))
    return found.phase if found is not None and again else None
