"""A job's output, from two files on its host: a log, which is data, and events, which are protocol. Pure.

The log contains all output: of engines, hooks, docker. Events are written by one shell function
(hostside/event.sh) into a file of their own, which only the job's own scripts have open, so that no printed text
can become one. Each carries the job's nonce, and the size of the log at its time: its position among the lines.
"""

from __future__ import annotations

import base64
import binascii
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from rackwright.messages import printable
from rackwright.settings.secret import without_secrets

LONGEST_LINE = 16 * 1024
"""Bytes of a line of the log that are kept: a container may print megabytes without a line break."""
LONGEST_EVENT = 256 * 1024
"""Bytes of an event: the longest is a row of the proof, which the judge has cut to far less."""
PROGRESS = "progress"
"""The event that reports a job's progress."""
DAMAGED = "damaged"
"""The event that names a file whose bytes are not the verified ones, or that is gone."""


@dataclass(frozen=True)
class Event:
    """A message of a job to the control machine: a defined keyword, and a text that is data."""

    kind: str
    text: str


Heard = str | Event
"""A line of the log, or an event."""


def text_of(heard: Heard) -> str:
    """Return the text for people."""
    return heard if isinstance(heard, str) else heard.text


class Splitter:
    """Splits bytes into lines, however they arrive. A line that is too long keeps its beginning, with a mark."""

    def __init__(self, longest: int) -> None:
        self._longest, self._line, self._dropped = longest, bytearray(), 0

    def feed(self, content: bytes) -> Iterator[str]:
        """Yield the lines that end in `content`."""
        *ended, unfinished = content.split(b"\n")
        for part in ended:
            self._add(part)
            yield self._take()
        self._add(unfinished)

    def end(self) -> Iterator[str]:
        """Yield the last line, when it has no line break."""
        if self._line:
            yield self._take()

    def _add(self, part: bytes) -> None:
        fitting = part[: self._longest - len(self._line)]
        self._line += fitting
        self._dropped += len(part) - len(fitting)

    def _take(self) -> str:
        # Decoded when it is whole: a character may have come in two parts.
        text = self._line.decode(errors="replace")
        mark = f" [{self._dropped} bytes more]" if self._dropped else ""
        self._line, self._dropped = bytearray(), 0
        return text + mark


class JobStream:
    """Log and events of one job as one sequence, independent of how its bytes arrive."""

    def __init__(self, nonce: str) -> None:
        self.nonce = nonce
        self.log_bytes = self.event_bytes = 0
        """Bytes already read: the start of the next reading."""
        self._lines, self._frames = Splitter(LONGEST_LINE), Splitter(LONGEST_EVENT)
        self._waiting: deque[tuple[int, Event]] = deque()

    def take(self, log: bytes, events: bytes) -> Iterator[Heard]:
        """Yield lines and events of these bytes. The log must be read before the events, so that none comes too late.

        A line of the log is another program's: text in it that looks like a secret is masked.
        """
        self.event_bytes += len(events)
        for frame in self._frames.feed(events):
            if found := parse_frame(frame, self.nonce):
                self._waiting.append(found)
        begin, done = self.log_bytes, 0
        self.log_bytes += len(log)
        while self._waiting and self._waiting[0][0] <= self.log_bytes:
            position, event = self._waiting.popleft()
            here = max(position - begin, done)
            yield from map(without_secrets, self._lines.feed(log[done:here]))
            yield event
            done = here
        yield from map(without_secrets, self._lines.feed(log[done:]))

    def end(self) -> Iterator[Heard]:
        """Yield the remainder after the job's end: a line without a line break, and events after it."""
        yield from map(without_secrets, self._lines.end())
        while self._waiting:
            yield self._waiting.popleft()[1]


def parse_frame(frame: str, nonce: str) -> tuple[int, Event] | None:
    """Parse position and event of a line `NONCE POSITION KIND BASE64`; None for a line that is not this job's."""
    match frame.split(" "):
        case [mark, position, kind, text] if mark == nonce and position.isascii() and position.isdigit():
            try:
                return int(position[:18]), Event(kind, printable(_decoded(text), longest=LONGEST_EVENT))
            except (binascii.Error, ValueError):
                return None
    return None


def _decoded(text: str) -> str:
    return base64.b64decode(text, validate=True).decode(errors="replace")
