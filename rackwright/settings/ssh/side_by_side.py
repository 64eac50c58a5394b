"""Short commands run side by side, each with a limit of time and of bytes, and without a thread or a lock."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

AT_ONCE = 8
"""Commands under way at the same time: they cost CPU, not waiting."""
SECONDS = 30
"""Within which one command must have ended."""
BYTES = 1 << 18
"""Of one stream of a command; what comes after it is dropped."""


@dataclass
class Finished:
    """The end of a command: its exit status (None: it took too long, and was ended), and what it printed."""

    status: int | None
    out: str
    err: str


@dataclass
class _Running:
    process: subprocess.Popen[bytes]
    until: float
    streams: dict[int, bytearray] = field(default_factory=dict)
    """Standard output and error, by file number."""
    open: set[int] = field(default_factory=set)
    """Those that have not ended."""


def run_all(commands: Sequence[Sequence[str]]) -> list[Finished]:
    """Run commands, a few at a time; how each ended, in their order. Raises OSError when one cannot be started."""
    found: list[Finished] = []
    for first in range(0, len(commands), AT_ONCE):
        found += _run(commands[first : first + AT_ONCE])
    return found


def _run(commands: Sequence[Sequence[str]]) -> list[Finished]:
    running = [_start(words) for words in commands]
    with selectors.DefaultSelector() as selector:
        for one in running:
            for stream in (one.process.stdout, one.process.stderr):
                if stream is not None:
                    one.streams[stream.fileno()] = bytearray()
                    one.open.add(stream.fileno())
                    os.set_blocking(stream.fileno(), False)
                    selector.register(stream, selectors.EVENT_READ, one)
        while any(one.open and time.monotonic() < one.until for one in running):
            for key, _ in selector.select(0.1):
                _take(selector, key)
            for one in running:
                if one.process.poll() is not None:
                    _drain(selector, one)
    return [_end(one) for one in running]


def _start(words: Sequence[str]) -> _Running:
    pipe = subprocess.PIPE
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True)
    return _Running(process, time.monotonic() + SECONDS)


def _take(selector: selectors.BaseSelector, key: selectors.SelectorKey) -> bool:
    """Read what is there; False when nothing is, for now or for good."""
    one: _Running = key.data
    try:
        chunk = os.read(key.fd, 1 << 16)
    except BlockingIOError:
        return False
    if not chunk:
        selector.unregister(key.fileobj)
        one.open.discard(key.fd)
        return False
    one.streams[key.fd] += chunk[: BYTES - len(one.streams[key.fd])]
    return True


def _drain(selector: selectors.BaseSelector, one: _Running) -> None:
    """Read the rest of a command that has ended; a child that it left behind delays no caller."""
    for fd in list(one.open):
        key = selector.get_key(fd)
        while _take(selector, key):
            pass
        if fd in one.open:
            selector.unregister(key.fileobj)
            one.open.discard(fd)


def _end(one: _Running) -> Finished:
    try:
        status: int | None = one.process.wait(max(one.until - time.monotonic(), 0.0))
    except subprocess.TimeoutExpired:
        os.killpg(one.process.pid, signal.SIGKILL)
        one.process.wait()
        status = None
    out, err = (bytes(stream).decode(errors="replace") for stream in one.streams.values())
    for stream in (one.process.stdout, one.process.stderr):
        if stream is not None:
            stream.close()
    return Finished(status, out, err)
