"""Simple steps on a host: scripts that run on the spot, and files that are replaced whole.

What changes the host is refused by it unless this run still holds its lease.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from rackwright.adapter.command_output import Printed, last_of
from rackwright.adapter.connection import Command, GoneError, command, reconnected, run
from rackwright.adapter.host import Host, shout
from rackwright.adapter.run_context import part_of
from rackwright.adapter.ssh.passwords import PasswordWantedError
from rackwright.adapter.timeouts import GRACE, PastLimitError
from rackwright.hostside import host_script
from rackwright.plan.change import Shell, WriteFile
from rackwright.record.cause import Cause, Reason
from rackwright.record.journal import note
from rackwright.remote.errors import ConnectionLostError, LeaseLostError, StepFailedError, UnboundedError
from rackwright.remote.stdin_payload import as_one, failed_of, sent
from rackwright.remote.unwritable import unwritable
from rackwright.settings.secret import Secret


def command_of(step: Shell | WriteFile) -> Command:
    """Return the command of a simple step. File contents and secrets travel by standard input only.

    It has a limit on this side too: a host whose `sh` or sshd hangs does not end it.
    """
    step = _shell_of(step)
    script, text = sent(step)
    words = ("timeout", "-k", "10", str(step.timeout), "sh", "-c")
    return command(*words, script=script, stdin=text, seconds=step.timeout + GRACE)


def _shell_of(step: Shell | WriteFile) -> Shell:
    if isinstance(step, Shell):
        return step
    script = host_script("write_file", path=step.path, mode=step.mode, owner=step.owner)
    return Shell(script, stdin=_encoded(step.content))


def _encoded(content: str | Secret) -> Secret:
    text = content.unmask() if isinstance(content, Secret) else content
    return Secret(base64.b64encode(text.encode()).decode())


def remote(
    host: Host, command: Command, timeout: int | None = None, quiet: bool = False, twice: bool = False
) -> tuple[bool, Printed]:
    """Run one command on a host with the host's own arguments (sudo and the like).

    quiet: not shown even with -vv. twice: it may run twice, so after a lost connection it reconnects and asks again
    before anybody is blamed. Raises ConnectionLostError, with what that means.
    """
    try:
        with _as_failures(host):
            ok, output = run(host, command, timeout, quiet)
        if ok or not twice or output.output_lines:
            return ok, output
    except UnboundedError:
        raise  # it would do so again
    except ConnectionLostError:
        if not (twice and reconnected(host)):
            raise
    with _as_failures(host):
        return run(host, command, timeout, quiet)


@contextmanager
def _as_failures(host: Host) -> Iterator[None]:
    """Raise what a connection raises as failures of a step."""
    try:
        yield
    except PasswordWantedError as error:
        raise StepFailedError(f"{host.name}: {error.text}", code=error.code) from error
    except PastLimitError as error:
        raise UnboundedError(error.text, code=error.code) from error
    except GoneError as error:
        raise ConnectionLostError(lost(str(error))) from error


class Writer(Protocol):
    """The right to write to a host, which the host itself checks before each script: its lease."""

    @property
    def is_over(self) -> bool:
        """True when it was lost or given back."""

    def checked(self, script: str, writes: bool) -> str:
        """Return a script behind the check. writes: the next writer waits until the script has ended."""

    def heard(self, ok: bool, errors: Sequence[str]) -> None:
        """Take in how a checked script ended, with its errors. Raises LeaseLostError when the check refused it."""


@dataclass(frozen=True)
class Writers:
    """The run's right to write to its hosts, by host name."""

    by_host: dict[str, Writer] = field(default_factory=dict)


def under_lease(
    host: Host,
    step: Shell | WriteFile,
    writes: bool = True,
    twice: bool = False,
) -> tuple[bool, Printed]:
    """Run a step that the host refuses unless this run still holds its lease; renews it.

    writes: False when the step only follows what the host does on its own. twice: as `remote` has it. Raises
    LeaseLostError.
    """
    writer = part_of(host.state, Writers).by_host.get(host.name)
    if writer is None or writer.is_over:
        raise LeaseLostError("this run no longer holds the host's lease, so nothing more was changed here")
    shell = _shell_of(step)
    script = writer.checked(shell.script, writes)
    ok, output = remote(host, command_of(replace(shell, script=script)), twice=twice)
    writer.heard(ok, output.stderr_lines)
    return ok, output


def lost(how: str) -> str:
    """Return the message of a lost connection."""
    return f"the connection was lost ({how}); run the same command again"


def complain(host: Host, text: str) -> None:
    """Print an error for a host, line by line; the run's record keeps it whole."""
    note("error", host=host.name, text=text.rstrip())
    shout(host, text)


def run_simple(host: Host, *steps: Shell | WriteFile) -> None:
    """Run scripts and write files on the spot, up to the first that fails. Raises StepFailedError."""
    ok, output = under_lease(host, as_one([_shell_of(step) for step in steps]))
    if not ok:
        number, errors = failed_of(output.stderr_lines)
        failed = steps[number]
        path = failed.path if isinstance(failed, WriteFile) else ""
        if refused := unwritable(errors, path):
            raise StepFailedError(refused[1], (Reason(Cause.DISK, "a file that cannot be written"),), code=refused[0])
        if isinstance(failed, Shell) and failed.title:
            raise StepFailedError("\n  ".join([f"{failed.title}:", *errors]), code=failed.code)
        what = path or "a command"
        raise StepFailedError(f"{what} failed: {last_of(errors or output.stdout_lines)}", code="RW0714")
