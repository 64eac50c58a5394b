"""A host's connection: run a command, connect again, open another, close it. pyinfra's connector is behind it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast

from paramiko import SSHException
from pyinfra.api import arguments
from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.api.exceptions import ConnectError
from pyinfra.api.host import Host

from rackwright.adapter.command_output import Printed
from rackwright.adapter.concurrency import sleep
from rackwright.adapter.run_context import part_of
from rackwright.adapter.ssh.way_back import lead_back_again
from rackwright.adapter.timeouts import PastLimitError, is_lost, is_unconnected, tune

Command = StringCommand
"""A command for a host."""
LOST = (OSError, SSHException, EOFError, ConnectError)
"""Errors of the transport when the connection is gone."""
RECONNECT = (1.0, 3.0, 6.0)
"""Seconds before each try to connect again."""

_ARGUMENTS: ContextVar[dict[str, Any] | None] = ContextVar("_ARGUMENTS", default=None)
"""Arguments for commands that outlive their operation: those of the operation that began them."""


class GoneError(OSError):
    """The connection is gone; the text says how."""


class Unshown(str):
    """A text that logs show as a word; what is written of it to a host is the text itself, its last line closed.

    pyinfra would format one that has none to add it, and so send the word.
    """

    def __new__(cls, text: str) -> Unshown:
        """Close the last line."""
        return super().__new__(cls, text if text.endswith("\n") else text + "\n")

    def __str__(self) -> str:
        return "*not shown*"

    __repr__ = __str__

    def __format__(self, _: str) -> str:
        return str(self)


@dataclass(frozen=True)
class GivenUp:
    """Hosts that went past a limit, each with the connection that was closed for it, and why."""

    by_host: dict[str, tuple[object, PastLimitError]] = field(default_factory=dict)

    def error_of(self, host: Host) -> PastLimitError | None:
        """Return why a host is lost; None once it has another connection."""
        client, error = self.by_host.get(host.name, (None, None))
        return error if error and client is getattr(host.connector, "client", None) else None


def command(*words: str, script: str = "", stdin: str | None = None, seconds: int | None = None) -> Command:
    """Return a command of these words, with a script as its last one; only its standard input may hold secrets.

    seconds: its limit on this side, since a host whose `sh` or sshd hangs does not end it.
    """
    quoted = [QuoteString(script)] if script else []
    made = StringCommand(*words, *quoted) if stdin is None else StringCommand(*words, *quoted, _stdin=Unshown(stdin))
    if seconds is not None:
        made.connector_arguments["_timeout"] = seconds
    return made


def run(host: Host, command: Command, seconds: int | None = None, quiet: bool = False) -> tuple[bool, Printed]:
    """Run a command with the host's own arguments (sudo and the like).

    seconds: its limit on this side, in place of the command's own. quiet: not shown even with -vv. Raises GoneError
    without a connection, PastLimitError past a limit, and then for every later command of this connection.
    """
    if earlier := part_of(host.state, GivenUp).error_of(host):
        raise earlier
    if is_unconnected(host):
        raise GoneError("closed")
    client = getattr(host.connector, "client", None)
    try:
        ok, output = host.run_shell_command(
            command,
            print_output=host.state.print_output and not quiet,
            print_input=host.state.print_input and not quiet,
            **_chosen(host, command, seconds),
        )
    except PastLimitError as error:
        part_of(host.state, GivenUp).by_host[host.name] = client, error
        raise
    except LOST as error:
        raise GoneError(str(error) or type(error).__name__) from error
    if not ok and is_lost(host):
        raise GoneError("closed")
    return ok, output


def _chosen(host: Host, command: Command, seconds: int | None) -> dict[str, Any]:
    chosen = {**_arguments(host), **command.connector_arguments}
    return {**chosen, "_timeout": seconds} if seconds else chosen


def reconnected(host: Host) -> bool:
    """Return True once a lost connection stands again, within seconds."""
    for pause in RECONNECT:
        sleep(pause)
        with suppress(*LOST):
            connect(host)
            return True
    return False


def connect(host: Host) -> None:
    """Make a host's connection. Raises one of LOST."""
    host.connector.connect()
    tune(host)
    lead_back_again(host)


def close(host: Host) -> None:
    """Close a host's connection, if it has one."""
    client = getattr(host.connector, "client", None)
    if client is not None:
        client.close()


def over_new_connection(host: Host, command: Command, seconds: int) -> bool:
    """Run a command over an SSH connection made just now. Raises one of LOST when none can be made.

    seconds: the limit of the command on this side.
    """
    connector = type(host.connector)(host.state, host)
    connector.connect()
    try:
        ok, _output = connector.run_shell_command(command, **{**_arguments(host), "_timeout": seconds})
        return ok
    finally:
        client = getattr(connector, "client", None)
        if client is not None:
            client.close()


def before_closing(host: Host, work: Callable[[], None]) -> None:
    """Have work done before the run closes a host's connection, however the run ends."""
    close_it = host.connector.disconnect

    def work_and_close() -> None:
        work()
        close_it()

    host.connector.disconnect = work_and_close  # type: ignore[method-assign]


def beside(host: Host, work: Callable[[], None]) -> Callable[[], None]:
    """Return work on a host that outlasts the operation which runs there now, by that operation's arguments."""
    current = _arguments(host)

    def carry_out() -> None:
        _ARGUMENTS.set(current)
        work()

    return carry_out


def _arguments(host: Host) -> dict[str, Any]:
    """Return how commands run on a host (`_sudo` and the like): by its data, or by the operation that runs there."""
    if (earlier := _ARGUMENTS.get()) is not None:
        return dict(earlier)
    of_host, _ = arguments.pop_global_arguments(host.state, host, {})
    merged = {**cast(dict[str, Any], of_host), **cast(dict[str, Any], host.current_op_global_arguments or {})}
    return {key: merged[key] for key in arguments.CONNECTOR_ARGUMENT_KEYS if key in merged}
