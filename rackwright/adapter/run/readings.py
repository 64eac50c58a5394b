"""Hosts that are read again and again, each over one connection that stays open.

A thread a host: it logs in, sends a request and takes the lines up to the last one of a reading, at each interval.
A host that takes too long or prints too much is lost, which the others do not notice, and is logged in to again later.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pyinfra.api.host import Host

from rackwright.adapter.concurrency import new_condition, new_event, new_lock, spawn
from rackwright.adapter.run.poll import (
    AT_ONCE,
    CHUNK,
    TROUBLES,
    Reply,
    closed_after,
    command_line,
    quiet_state,
    run_once,
    trouble_of,
    why_failed,
)
from rackwright.adapter.timeouts import FloodError, tune
from rackwright.loading.host import InventoryHost

LONGEST = 30.0
"""Seconds within which a reading must be whole: an engine under load may take 10 to say how it is."""
LARGEST = 1 << 20
"""Bytes of a reading."""
PAUSE = 15.0
"""Seconds until a lost host is logged in to again."""


@dataclass(frozen=True)
class Reading:
    """The lines of one reading, or why they are missing."""

    request: str
    lines: tuple[str, ...] = ()
    trouble: str = ""
    reached: bool = True
    at: float = 0.0
    """Seconds of this machine's own clock since its start, as `time.monotonic` has them."""


@dataclass
class Script:
    """The script that runs on a host."""

    repeated: str
    """Reads a request from standard input for each reading."""
    once: Callable[[str], str]
    """Return the command for one reading of a request, for a host that is not connected by SSH."""
    last: str
    """The last line of a reading."""


@dataclass
class Readings:
    """The readings of all hosts; `new` hands out those that have come since it was last called."""

    entries: Sequence[InventoryHost]
    scripts: Mapping[str, Script]
    """By host."""
    next_request: Callable[[str, Reading | None], str]
    """Return the request to send, for a host and its last reading; called in the host's own thread."""
    interval: float
    _new: list[tuple[str, Reading]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make what threads share; nothing is connected yet."""
        self._stopped, self._lock, self._logins = new_event(), new_lock(), _Slots(AT_ONCE)
        self._hosts: dict[str, Host] = {}

    def start(self) -> None:
        """Log in to all hosts, each in a thread of its own, and begin to read."""
        state = quiet_state(self.entries, len(self.entries))
        self._hosts = {entry.name: state.inventory.get_host(entry.name) for entry in self.entries}
        for name in self._hosts:
            spawn(lambda name=name: self._follow(name), f"read {name}")  # type: ignore[misc]

    def new(self) -> list[tuple[str, Reading]]:
        """Return what has come since the last call, by host, in the order in which it came."""
        with self._lock:
            found, self._new = self._new, []
        return found

    def stop(self) -> None:
        """Close all connections; the shells on the hosts end with them."""
        self._stopped.set()
        for host in self._hosts.values():
            _close(host)

    def _follow(self, name: str) -> None:
        host = self._hosts[name]
        while not self._stopped.is_set():
            try:
                self._read(name, host)
            except TROUBLES as error:
                self._put(name, _lost(error, host))
            finally:
                _close(host)
            self._stopped.wait(PAUSE)

    def _read(self, name: str, host: Host) -> None:
        """Connect to a host, and read it until that fails."""
        with self._logins:
            host.connector.connect()
        tune(host)
        ask, last = _asker(host, self.scripts[name]), None
        while not self._stopped.is_set():
            began = time.monotonic()
            request = self.next_request(name, last)
            last = ask(request)
            self._put(name, last)
            self._stopped.wait(max(0.1, self.interval - (time.monotonic() - began)))

    def _put(self, name: str, reading: Reading) -> None:
        if not self._stopped.is_set():
            with self._lock:
                self._new.append((name, reading))


class _Slots:
    """A limit of the threads that do something at the same time."""

    def __init__(self, free: int) -> None:
        self._free, self._changed = free, new_condition()

    def __enter__(self) -> None:
        with self._changed:
            while not self._free:
                self._changed.wait()
            self._free -= 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._free += 1
            self._changed.notify()


def _asker(host: Host, script: Script) -> Callable[[str], Reading]:
    """Return what asks a connected host for a reading."""
    client: Any = getattr(host.connector, "client", None)
    if client is None:
        return lambda request: _made(request, run_once(host, script.once(request)), script.last)
    # Not by `client.exec_command`: standard input would end with the file that it returns.
    with closed_after(client, LONGEST):
        channel = client.get_transport().open_session()
        channel.exec_command(command_line(host, script.repeated))
    channel.settimeout(LONGEST)
    return lambda request: Reading(request, _lines_until(channel, request, script.last), at=time.monotonic())


def _made(request: str, reply: Reply, last: str) -> Reading:
    lines = tuple(row for row in reply.lines if row != last)
    return Reading(request, lines, reply.trouble, reply.reached, time.monotonic())


def _lost(error: BaseException, host: Host) -> Reading:
    if isinstance(error, TimeoutError):
        return Reading("", trouble=f"it did not answer within {LONGEST:.0f} s", at=time.monotonic())
    reply = trouble_of(error, host)
    return Reading("", trouble=reply.trouble, reached=reply.reached, at=time.monotonic())


def _lines_until(channel: Any, request: str, last: str) -> tuple[str, ...]:
    """Return the lines before the last one. Raises TimeoutError, FloodError, or OSError with the host's own words."""
    channel.sendall(f"{request}\n".encode())
    end, received = f"{last}\n".encode(), bytearray()
    until = time.monotonic() + LONGEST
    while not (received.endswith(b"\n" + end) or received == end):
        if time.monotonic() > until:
            raise TimeoutError
        chunk = channel.recv(CHUNK)
        if not chunk:
            raise OSError(_last_words(channel, received))
        received += chunk
        if len(received) > LARGEST:
            raise FloodError(LARGEST)
    return tuple(received.decode(errors="replace").removesuffix("\n").split("\n")[:-1])


def _last_words(channel: Any, received: bytearray) -> str:
    """Return why a command ended that should not: sudo's refusal, for one."""
    errors = bytearray()
    with suppress(*TROUBLES):
        while len(errors) < LARGEST and (chunk := channel.recv_stderr(CHUNK)):
            errors += chunk
    lines = errors.decode(errors="replace").splitlines()
    return why_failed(lines, received.decode(errors="replace").splitlines())


def _close(host: Host) -> None:
    client: Any = getattr(host.connector, "client", None)
    if client is not None:
        with suppress(*TROUBLES):
            client.close()
