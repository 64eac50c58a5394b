"""One command on each of many hosts at little more than the price of the logins.

The connections are pyinfra's own, so a host is reached, trusted and refused as in a deploy. What is left out is what a
deploy needs and a look does not: greenlets around every line that a host prints, and the wait of all hosts for the
slowest login.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from paramiko import SSHException
from pyinfra import logger
from pyinfra.api import Config, State, StringCommand
from pyinfra.api.arguments import CONNECTOR_ARGUMENT_KEYS, pop_global_arguments
from pyinfra.api.exceptions import ConnectError, PyinfraError
from pyinfra.api.host import Host
from pyinfra.connectors.util import make_unix_command_for_host

from rackwright.adapter.run.current_run import inventory_of
from rackwright.adapter.run.inventories import tell
from rackwright.adapter.ssh.client import use_patient_client
from rackwright.adapter.ssh.open_files import allow_open_files
from rackwright.adapter.terminal import rebuilt
from rackwright.adapter.timeouts import FloodError, Spent, tune
from rackwright.loading.host import InventoryHost
from rackwright.messages import listed, waiting
from rackwright.settings.ssh.known_hosts import not_followed

AT_ONCE = 100
"""Logins under way at the same time."""
SECONDS = 60
"""Within which a host must have answered."""
CHUNK = 32 * 1024
"""Bytes that are read at once."""
STEP = 1.0
"""Seconds after which a host that prints nothing is asked for its errors."""


@dataclass(frozen=True)
class Reply:
    """The output of a host, or the reason for its absence."""

    lines: tuple[str, ...] = ()
    trouble: str = ""
    reached: bool = True


def poll(
    entries: Sequence[InventoryHost],
    script: Callable[[InventoryHost], str],
    while_waiting: Callable[[], object] = lambda: None,
) -> dict[str, Reply]:
    """Run each host's script, as root; replies by host name, one for every host.

    while_waiting: what this machine has to do while it waits for theirs.
    """
    if not entries:
        return {}
    inventory = quiet_state(entries, min(AT_ONCE, len(entries))).inventory
    names = [entry.name for entry in entries]
    scripts = {entry.name: script(entry) for entry in entries}
    replies, threads = _side_by_side(names, lambda name: _ask(inventory.get_host(name), scripts[name]))
    with waiting(lambda: listed([name for name, reply in replies.items() if not reply.done()], len(names))):
        while_waiting()
        found = {name: reply.result() for name, reply in replies.items()}
    for thread in threads:
        # One that ends after gevent has patched says so aloud.
        thread.join(STEP)
    return found


def quiet_state(entries: Sequence[InventoryHost], at_once: int) -> State:
    """Return pyinfra's state of hosts that threads of this process log in to. at_once: connections at the same time."""
    tell(not_followed((entry.name, entry.data) for entry in entries))
    use_patient_client()
    allow_open_files(at_once)
    state = State(inventory_of((entry.name, entry.data) for entry in entries), Config())
    _read_keys(state, entries)
    # pyinfra and paramiko log every refusal; the rows tell it.
    logger.setLevel(logging.CRITICAL)
    logging.getLogger("paramiko").setLevel(logging.CRITICAL)
    return state


def _side_by_side(
    names: Sequence[str], ask: Callable[[str], Reply]
) -> tuple[dict[str, Future[Reply]], list[threading.Thread]]:
    """Ask all hosts in threads that Ctrl-C does not wait for; Python joins those of an executor as it ends."""
    replies: dict[str, Future[Reply]] = {name: Future() for name in names}
    waiting = list(reversed(names))

    def work() -> None:
        with suppress(IndexError):
            while True:
                name = waiting.pop()
                try:
                    replies[name].set_result(ask(name))
                except BaseException as error:
                    replies[name].set_exception(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(AT_ONCE, len(names)))]
    for thread in threads:
        thread.start()
    return replies, threads


def _read_keys(state: State, entries: Sequence[InventoryHost]) -> None:
    """Have pyinfra read all login keys once before the threads begin: its lock is for greenlets, and it may ask."""
    for name in {entry.data["ssh_key"]: entry.name for entry in entries if entry.data.get("ssh_key")}.values():
        prepare: Any = getattr(state.inventory.get_host(name).connector, "make_paramiko_kwargs", None)
        # An unreadable key is reported in the row of each host that wants it.
        with suppress(PyinfraError, OSError, SSHException, EOFError):
            if prepare is not None:
                prepare()


def _ask(host: Host, script: str) -> Reply:
    with _closing(host):
        try:
            host.connector.connect()
            tune(host)
            return run_once(host, script)
        except TROUBLES as error:
            return trouble_of(error, host)


TROUBLES = (OSError, SSHException, EOFError, PyinfraError)
"""Errors of one host's connection."""


def trouble_of(error: BaseException, host: Host) -> Reply:
    """Return the reply of a host whose connection failed: in words, for its row."""
    if isinstance(error, ConnectError):
        return Reply(trouble=f"cannot be reached: {error}{rebuilt(str(error), host.name)}", reached=False)
    if isinstance(error, FloodError):
        return Reply(trouble=str(error))
    if isinstance(error, TimeoutError):
        return Reply(trouble=f"it did not answer within {SECONDS} s")
    return Reply(trouble=f"the connection was lost ({error or type(error).__name__})")


@contextmanager
def _closing(host: Host) -> Iterator[None]:
    try:
        yield
    finally:
        client: Any = getattr(host.connector, "client", None)
        if client is not None:
            client.close()


def run_once(host: Host, script: str) -> Reply:
    """Run a command to its end on a connected host, as root."""
    client: Any = getattr(host.connector, "client", None)
    if client is None:
        ok, output = host.connector.run_shell_command(StringCommand(script), **_arguments(host))
        return Reply(tuple(output.stdout_lines), "" if ok else why_failed(output.stderr_lines, output.stdout_lines))
    with closed_after(client, SECONDS):
        channel: Any = client.exec_command(command_line(host, script))[1].channel
        printed, errors = _output(channel)
        status = channel.recv_exit_status()
    lines = tuple(_lines(printed))
    return Reply(lines) if status == 0 else Reply(lines, why_failed(_lines(errors), lines))


def command_line(host: Host, script: str) -> str:
    """Return the command by which the login of a host that is reached by SSH runs a script as root."""
    skipped = ("_get_pty", "_timeout", "_stdin", "_success_exit_codes")
    words = {key: value for key, value in _arguments(host).items() if key not in skipped}
    return make_unix_command_for_host(host.state, host, StringCommand(script), **words).get_raw_value()


def _arguments(host: Host) -> dict[str, Any]:
    """Return the host's own values of pyinfra's connector arguments, sudo's among them."""
    arguments, _ = pop_global_arguments(host.state, host, {})
    return {key: arguments[key] for key in CONNECTOR_ARGUMENT_KEYS if key in arguments}  # type: ignore[literal-required]


@contextmanager
def closed_after(client: Any, seconds: float) -> Iterator[None]:
    """Close a connection that is not done in time, which ends whatever waits for it. Raises TimeoutError."""
    late = threading.Event()

    def close() -> None:
        late.set()
        client.close()

    timer = threading.Timer(seconds, close)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (OSError, SSHException, EOFError) as error:
        if late.is_set():
            raise TimeoutError from error
        raise
    finally:
        timer.cancel()
        timer.join(STEP)
    if late.is_set():
        raise TimeoutError


def _output(channel: Any) -> tuple[bytes, bytes]:
    """Yield what a command prints on both streams, as it comes: unread output stops the host. Raises FloodError."""
    spent, output, errors = Spent(), bytearray(), bytearray()
    channel.settimeout(STEP)
    chunk = b"-"
    while chunk:
        with suppress(TimeoutError):
            chunk = spent.take(channel.recv(CHUNK))
            output += chunk
        while channel.recv_stderr_ready():
            errors += spent.take(channel.recv_stderr(CHUNK))
    channel.settimeout(None)
    while chunk := spent.take(channel.recv_stderr(CHUNK)):
        errors += chunk
    return bytes(output), bytes(errors)


def _lines(output: bytes) -> list[str]:
    return output.decode(errors="replace").removesuffix("\n").split("\n")


def why_failed(errors: Sequence[str], output: Sequence[str]) -> str:
    """Return why a command failed, by the last line that it printed."""
    from rackwright.remote.sudo_errors import why_refused  # noqa: PLC0415 - only for what goes wrong

    printed = [text for text in errors if text]
    return why_refused(errors, output) or f"could not be read: {printed[-1] if printed else 'it printed nothing'}"
