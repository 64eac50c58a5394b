"""pyinfra's commands within limits: it waits for a host for ever, and keeps whatever the host prints."""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial, wraps
from typing import Any

import gevent
from gevent.lock import BoundedSemaphore
from paramiko import SSHException
from pyinfra.api.output import echo, format_text
from pyinfra.connectors import ssh, util
from pyinfra.connectors.ssh import SSHConnector
from pyinfra.connectors.util import CommandOutput, OutputLine

from rackwright.adapter.patch import held, patch
from rackwright.adapter.timeouts import (
    DEAD,
    LONGEST,
    SLOW,
    FrozenHostError,
    PastLimitError,
    SilentHostError,
    Spent,
)

CHUNK = 32 * 1024
"""Bytes that are read at once; other hosts have their turn after each."""
AGAIN = 45
"""Seconds until a command that still runs is reported again, at first; then as long as it has run."""
READING = "stdout_buffer stderr_buffer timeout print_output print_prefix"
RUNNING = "self command print_output print_input arguments"
"""Parameters of what is replaced."""


def limit_commands() -> None:
    """Set limits for pyinfra's commands from now on. Safe to repeat; raises ChangedPackageError."""
    for module in (ssh, util):
        patch(module, "read_output_buffers", read_within_limits, takes=READING)
    if not hasattr(run := held(SSHConnector, "run_shell_command", RUNNING), "limited"):
        patch(SSHConnector, "run_shell_command", _limited(run))


def _limited(run: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(run)
    def within(connector: SSHConnector, *words: Any, **arguments: Any) -> Any:
        # The whole command: its session, its standard input, what it prints, its exit status.
        seconds = arguments.pop("_timeout", None) or LONGEST
        client, dead = connector.client, list[SilentHostError]()
        watch = gevent.spawn_later(SLOW, _watch, connector, dead)
        try:
            with gevent.Timeout(seconds, SilentHostError(seconds)):
                return _unless(dead, lambda: run(connector, *words, **arguments))
        except PastLimitError:
            lose(client)
            raise
        finally:
            watch.kill(block=False)

    vars(within)["limited"] = True
    return within


def _unless(dead: Sequence[SilentHostError], run: Callable[[], Any]) -> Any:
    """Return a command's result. Raises, whatever it says, the error for which its connection was closed."""
    try:
        found = run()
    except (OSError, EOFError, SSHException):
        if dead:
            raise dead[0] from None
        raise
    if dead:
        raise dead[0]
    return found


def _watch(connector: SSHConnector, dead: list[SilentHostError]) -> None:
    """Close the connection of a host whose sshd does not answer while a command runs."""
    client: Any = connector.client
    begun, due = time.monotonic() - SLOW, 0.0
    while client is not None and (transport := client.get_transport()) is not None and transport.is_active():
        if (ran := time.monotonic() - begun) >= due:
            echo(f"{connector.host.print_prefix}a command runs for {ran:.0f} s now, and is waited for", err=True)
            due = ran + max(AGAIN, ran)
        if not _answers(transport):
            dead.append(FrozenHostError(DEAD))
            lose(client)
            return
        gevent.sleep(SLOW)


def _answers(transport: Any) -> bool:
    """Return True if sshd answers within DEAD seconds, with any answer; two commands ask one after the other."""
    lock = vars(transport).setdefault("rackwright_asks", BoundedSemaphore())
    try:
        with gevent.Timeout(DEAD), lock:
            transport.global_request("keepalive@openssh.com", wait=True)
    except gevent.Timeout:
        return not transport.is_active()
    return True


def lose(client: Any) -> None:
    """Close an unusable connection without waiting for the host."""
    if client is not None:
        gevent.spawn(_close, client)
        gevent.sleep(0)


def _close(client: Any) -> None:
    with suppress(OSError, EOFError, SSHException):
        client.close()


def read_within_limits(
    stdout_buffer: Any, stderr_buffer: Any, timeout: int | None, print_output: bool, print_prefix: str
) -> CommandOutput:
    """Return what a command prints, by lines, as pyinfra's own function does.

    Raises FloodError for too much, and TimeoutError when it takes longer than `timeout` seconds.
    """
    spent, lines = Spent(), list[OutputLine]()
    shown = _shown(print_output, print_prefix)
    readers = [
        gevent.spawn(_read, name, _source(name, buffer), spent, lines, shown)
        for name, buffer in (("stdout", stdout_buffer), ("stderr", stderr_buffer))
    ]
    try:
        for reader in gevent.iwait(readers, timeout=timeout):
            if error := reader.get():
                raise error
        if not all(reader.ready() for reader in readers):
            raise TimeoutError
    finally:
        gevent.killall(readers, block=False)
    return CommandOutput(lines)


def _shown(print_output: bool, prefix: str) -> Callable[[str, str], None]:
    def show(name: str, text: str) -> None:
        if print_output:
            echo(f"{prefix}{format_text(text, 'red') if name == 'stderr' else text}", err=True)

    return show


def _read(
    name: str,
    source: Callable[[], bytes],
    spent: Spent,
    lines: list[OutputLine],
    show: Callable[[str, str], None],
) -> Exception | None:
    """Return what went wrong, since gevent prints a traceback of what a greenlet raises."""
    try:
        for text in lines_of(lambda: spent.take(source())):
            lines.append(OutputLine(name, text))
            show(name, text)
    except (OSError, EOFError) as error:
        return error
    return None


def lines_of(read: Callable[[], bytes]) -> Iterator[str]:
    """Yield the lines of a stream, whatever its bytes are; other greenlets run between two chunks."""
    decoder, begun = codecs.getincrementaldecoder("utf-8")("replace"), list[str]()
    while chunk := read():
        first, *others = decoder.decode(chunk).split("\n")
        begun.append(first)
        if others:
            yield "".join(begun)
            yield from others[:-1]
            begun = [others[-1]]
        gevent.sleep(0)
    if last := "".join([*begun, decoder.decode(b"", True)]):
        yield last


def _source(name: str, buffer: Any) -> Callable[[], bytes]:
    channel = getattr(buffer, "channel", None)
    if channel is None:
        return partial(buffer.readline, CHUNK)
    return partial(channel.recv_stderr if name == "stderr" else channel.recv, CHUNK)
