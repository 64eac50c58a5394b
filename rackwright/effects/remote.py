"""The only place that writes to a host: steps become pyinfra commands, or are carried out on the spot.

The shell lines here are the same for every concern: an atomic file, a job that the host runs by itself, a
guarded change that undoes itself.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, cast

from paramiko import SSHException
from pyinfra import logger
from pyinfra.api import arguments
from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.api.exceptions import ConnectError
from pyinfra.api.host import Host
from pyinfra.api.state import State

from rackwright.effects import jobs
from rackwright.effects.by_input import Unshown, as_one, failed_of, sent
from rackwright.effects.held_leases import hold_of, lease_checked, was_refused, why_lost
from rackwright.effects.line import GRACE, PastLimitError, is_lost, is_unconnected, tune
from rackwright.effects.login import PasswordWantedError
from rackwright.effects.printed import Printed, last_of, tail
from rackwright.effects.run_context import RunningJobs, part_of
from rackwright.effects.slots import Slots
from rackwright.effects.unwritable import unwritable
from rackwright.hostside import DOCKER_ENVIRONMENT, durable_script, host_script
from rackwright.messages import RackwrightError, ReadingError, counted, paragraph, printable
from rackwright.paths import guard_file, guard_trial, guard_unit, job_unit
from rackwright.plan.change import Guarded, Job, Shell, WriteFile
from rackwright.plan.jobstream import PROGRESS, Event, Heard, JobStream, text_of
from rackwright.record.cause import Cause, Reason
from rackwright.record.journal import note
from rackwright.record.progress import Calm, Meter
from rackwright.settings.secret import Secret

LOST = (OSError, SSHException, EOFError, ConnectError)
"""What the transport raises when the connection is gone."""
RECONNECT = (1.0, 3.0, 6.0)
"""Seconds before each try to make a lost connection anew."""

_ARGUMENTS: ContextVar[dict[str, Any] | None] = ContextVar("_ARGUMENTS", default=None)
"""How commands run that belong to no operation any more: as the operation that began them was told."""


class StepFailedError(RackwrightError):
    """A step did not do what it should; the text says what and what to do next.

    `reasons`: what kinds of things went wrong, as far as whoever raises it knows; by default its class's.
    """

    reasons: tuple[Reason, ...] = ()

    def __init__(self, text: str = "", reasons: tuple[Reason, ...] = (), *, code: str = "") -> None:
        super().__init__(text, code=code)
        self.reasons = reasons or type(self).reasons


class NotStartedError(StepFailedError):
    """A job was not started, so it has changed nothing."""

    reasons = (Reason(Cause.OTHER, "the switch was not started"),)


class LeaseLostError(NotStartedError):
    """Another run may write to the host now, so this one must not."""

    code = "RW0713"
    reasons = (Reason(Cause.LEASE, "the lease"),)


class TakenBackError(StepFailedError):
    """The step failed and the host has taken it back, so nothing of it stays there."""


class ConnectionLostError(StepFailedError):
    """The connection is gone; what the host does by itself goes on."""

    code = "RW0712"
    reasons = (Reason(Cause.CONNECTION, "the connection"),)


@dataclass(frozen=True)
class GivenUp:
    """Hosts that went past a limit, each with the connection that was closed for it, and why."""

    by_host: dict[str, tuple[object, PastLimitError]] = field(default_factory=dict)

    def error_of(self, host: Host) -> PastLimitError | None:
        """Why a host is lost; None once it has another connection."""
        client, error = self.by_host.get(host.name, (None, None))
        return error if error and client is getattr(host.connector, "client", None) else None


class UnboundedError(ConnectionLostError):
    """A command took too long or printed too much, so its connection was closed."""


def command_of(step: Shell | WriteFile) -> StringCommand:
    """The pyinfra command of a simple step. File contents and secrets travel by standard input only.

    It has a limit on this side too: a host whose `sh` or sshd hangs does not end it.
    """
    step = _shell_of(step)
    script, text = sent(step)
    words = ["timeout", "-k", "10", str(step.timeout), "sh", "-c", QuoteString(script)]
    command = StringCommand(*words) if text is None else StringCommand(*words, _stdin=Unshown(text))
    command.connector_arguments["_timeout"] = step.timeout + GRACE
    return command


def _shell_of(step: Shell | WriteFile) -> Shell:
    if isinstance(step, Shell):
        return step
    script = host_script("write_file", path=step.path, mode=step.mode, owner=step.owner)
    return Shell(script, stdin=_encoded(step.content))


def _encoded(content: str | Secret) -> Secret:
    text = content.unmask() if isinstance(content, Secret) else content
    return Secret(base64.b64encode(text.encode()).decode())


def remote(
    state: State,
    host: Host,
    command: StringCommand,
    timeout: int | None = None,
    quiet: bool = False,
    twice: bool = False,
) -> tuple[bool, Printed]:
    """Run one command on a host with the host's own arguments (sudo and the like).

    quiet: not shown even with -vv. twice: it may run twice, so a lost connection is made anew, and it is asked again
    before anybody is blamed. Raises ConnectionLostError, with what that means.
    """
    try:
        ok, output = _run(state, host, command, timeout, quiet)
        if ok or not twice or output.output_lines:
            return ok, output
    except UnboundedError:
        raise  # it would do so again
    except ConnectionLostError:
        if not (twice and reconnected(host)):
            raise
    return _run(state, host, command, timeout, quiet)


def reconnected(host: Host) -> bool:
    """Whether a lost connection could be made anew, within seconds."""
    for pause in RECONNECT:
        time.sleep(pause)
        with suppress(*LOST):
            host.connector.connect()
            tune(host)
            return True
    return False


def _run(state: State, host: Host, command: StringCommand, timeout: int | None, quiet: bool) -> tuple[bool, Printed]:
    connector = _global_arguments(state, host)
    connector.update(command.connector_arguments)
    if timeout:
        connector["_timeout"] = timeout
    if known := part_of(state, GivenUp).error_of(host):
        raise UnboundedError(known.text, code=known.code)
    if is_unconnected(host):
        raise ConnectionLostError(lost("closed"))
    client = getattr(host.connector, "client", None)
    try:
        ok, output = host.run_shell_command(
            command,
            print_output=state.print_output and not quiet,
            print_input=state.print_input and not quiet,
            **connector,
        )
    except PasswordWantedError as error:
        raise StepFailedError(f"{host.name}: {error.text}", code=error.code) from error
    except PastLimitError as error:
        part_of(state, GivenUp).by_host[host.name] = client, error
        raise UnboundedError(error.text, code=error.code) from error
    except LOST as error:
        raise ConnectionLostError(lost(str(error) or type(error).__name__)) from error
    if not ok and is_lost(host):
        raise ConnectionLostError(lost("closed"))
    return ok, output


def under_lease(
    state: State,
    host: Host,
    step: Shell | WriteFile,
    writes: bool = True,
    twice: bool = False,
) -> tuple[bool, Printed]:
    """Run a step that the host refuses unless this run still holds its lease; renews it.

    writes: False when the step only follows what the host does by itself. twice: as `remote` has it. Raises
    LeaseLostError.
    """
    hold = hold_of(state, host.name)
    if hold is None:
        raise LeaseLostError("this run holds no lease on the host any more, so nothing more was changed here")
    shell = _shell_of(step)
    script = lease_checked(shell.script, hold.id, writes)
    ok, output = remote(state, host, command_of(replace(shell, script=script)), twice=twice)
    if not ok and was_refused(output.stderr_lines):
        hold.ended.set()
        raise LeaseLostError(why_lost(output.stderr_lines, datetime.now().astimezone()))
    hold.renewed = time.monotonic()
    return ok, output


def lost(how: str) -> str:
    """What to say of a connection that is gone."""
    return f"the connection was lost ({how}); run the same command again"


def say(host: Host, text: str, colour: str = "") -> None:
    """One line of progress for a host."""
    text = printable(text)
    host.log_styled(text, fg=colour) if colour else host.log(text)


def complain(host: Host, text: str) -> None:
    """An error for a host, line by line; the run's record keeps it whole."""
    note("error", host=host.name, text=text.rstrip())
    shout(host, text)


def shout(host: Host, text: str) -> None:
    """The same on the terminal alone."""
    for line in paragraph(text.rstrip()).split("\n"):
        host.log_styled(line, fg="red", log_func=logger.error)


def run_simple(state: State, host: Host, *steps: Shell | WriteFile) -> None:
    """Run scripts and write files on the spot, up to the first that fails. Raises StepFailedError."""
    ok, output = under_lease(state, host, as_one([_shell_of(step) for step in steps]))
    if not ok:
        number, errors = failed_of(output.stderr_lines)
        failed = steps[number]
        path = failed.path if isinstance(failed, WriteFile) else ""
        if refused := unwritable(errors, path):
            raise StepFailedError(refused[1], (Reason(Cause.DISK, "a file that cannot be written"),), code=refused[0])
        what = path or "a command"
        raise StepFailedError(f"{what} failed: {last_of(errors or output.stdout_lines)}", code="RW0714")


def run_job(state: State, host: Host, job: Job) -> None:
    """Start or join a job, show what it prints, and wait for its end. Raises StepFailedError."""
    ended = show_job(state, host, job, lambda text: say(host, f"  {text}"))
    if ended.status != 0:
        raise StepFailedError(f"{job.title}: {ended.text}; its last lines are above", code=job.code)


def show_job(
    state: State, host: Host, job: Job, show: Callable[[str], None], begun: Callable[[], None] = lambda: None
) -> jobs.Ended:
    """Start or join a job in its turn, show what is worth a line, and wait for its end. `begun` is called once it runs.

    Raises NotStartedError, ConnectionLostError.
    """

    def tell(others: int) -> None:
        say(host, f"  {job.title}: queued: {counted(others, 'host')} downloading (downloads.parallel)")

    calm = Calm()

    def heed(heard: Heard) -> None:
        if calm.says(heard):
            show(text_of(heard))

    with part_of(state, Slots).one(host.name, job.at_once, tell):
        ended = follow_job(state, host, job, heed, begun)
    if ended.status == jobs.MISTAKE:
        note("settings", host=host.name, text=job.title)
    return ended


def follow_job(
    state: State, host: Host, job: Job, heed: Callable[[Heard], None], begun: Callable[[], None] = lambda: None
) -> jobs.Ended:
    """Start or join a job, hand on what it says, lines and events, and wait for its end. `begun`: called once it runs.

    Raises NotStartedError, ConnectionLostError.
    """
    note("job", host=host.name, job=job.name, title=job.title, state="began", after=job.after or None)
    ended: jobs.Ended | None = None
    running = part_of(state, RunningJobs)
    try:
        nonce = _start(state, host, job)
        running.add(host.name)
        begun()
        ended = _follow(state, host, job, JobStream(nonce), heed)
        running.remove(host.name)
    finally:
        done = ended is not None and ended.status == 0
        note("job", host=host.name, job=job.name, title=job.title, state="done" if done else "failed")
    return ended


def _start(state: State, host: Host, job: Job) -> str:
    """Returns the job's nonce."""
    ok, output = _begin(state, host, job)
    # Before a switch the host is read again once another one has ended: line_up waits for that.
    if not ok and not job.trial and let_end(state, host, job, lambda heard: say(host, f"  {text_of(heard)}")):
        ok, output = _begin(state, host, job)
    if not ok:
        raise NotStartedError(f"{job.title}: could not be started: {tail(output)}", code="RW0715")
    try:
        started = jobs.parse_started(output.stdout_lines)
    except ReadingError as error:
        raise StepFailedError(f"{job.title}: {error.text}", code=error.code) from error
    if started.joined:
        say(host, f"{job.title}: already under way on the host, joining it")
    return started.nonce


def _begin(state: State, host: Host, job: Job) -> tuple[bool, Printed]:
    start = Shell(jobs.start_script(job), stdin=Secret(jobs.payload(job)))
    # One that has begun already is joined.
    if job.waits:
        return remote(state, host, command_of(start), twice=True)
    return under_lease(state, host, start, twice=True)


def let_end(state: State, host: Host, job: Job, heed: Callable[[Heard], None]) -> jobs.Ended | None:
    """Wait for a job of the same name and another aim that an earlier run has begun: it outlives its lease.

    Returns how it ended; None without one. Raises StepFailedError.
    """
    other = _other(state, host, job)
    if other is None:
        return None
    say(host, f"waiting for {job_unit(job.name)}, {other.text}; Ctrl-C leaves it running", "yellow")
    ended = _follow(state, host, job, JobStream(other.nonce), heed)
    say(host, f"{job_unit(job.name)} {ended.text}; continuing", "yellow")
    return ended


def _other(state: State, host: Host, job: Job) -> jobs.OtherJob | None:
    ok, output = remote(state, host, command_of(Shell(jobs.other_script(job), timeout=30)), twice=True)
    try:
        return jobs.parse_other(output.stdout_lines) if ok else None
    except ReadingError as error:
        raise StepFailedError(f"{job.title}: {error.text}", code=error.code) from error


def _follow(state: State, host: Host, job: Job, stream: JobStream, heed: Callable[[Heard], None]) -> jobs.Ended:
    meter, began = Meter(), time.monotonic()
    while True:
        update = _update(state, host, job, stream, time.monotonic() - began)
        for heard in stream.take(update.log, update.events):
            _hand_on(host, job, heard, meter, heed)
        if not update.running:
            for heard in stream.end():
                _hand_on(host, job, heard, meter, heed)
            return jobs.Ended(update.status, update.cut)


def _hand_on(host: Host, job: Job, heard: Heard, meter: Meter, heed: Callable[[Heard], None]) -> None:
    heed(heard)
    if (
        isinstance(heard, Event)
        and heard.word == PROGRESS
        and (told := meter.progress_fields(heard.text, time.monotonic()))
    ):
        note("progress", host=host.name, job=job.name, **told)


def _update(state: State, host: Host, job: Job, stream: JobStream, seconds: float) -> jobs.JobUpdate:
    script = jobs.follow_script(job.name, stream.nonce, stream.log_bytes, stream.event_bytes, seconds)
    follow = Shell(script, timeout=60)
    try:
        if job.waits:
            ok, output = remote(state, host, command_of(follow), twice=True)
        else:
            ok, output = under_lease(state, host, follow, writes=False, twice=True)
    except ConnectionLostError as error:
        raise ConnectionLostError(f"{job.title}: {error.text}: {job.alone}") from error
    if not ok:
        raise StepFailedError(f"{job.title}: its state could not be read: {tail(output)}", code="RW0706")
    try:
        return jobs.parse_update(output.stdout_lines)
    except ReadingError as error:
        raise StepFailedError(f"{job.title}: {error.text}", code=error.code) from error


def run_guarded(state: State, host: Host, step: Guarded) -> None:
    """Make a change that the host takes back unless a new connection confirms it. Raises StepFailedError."""
    arm = Shell(_arm(step), stdin=undo_script(step), timeout=step.seconds + 60, unseen=True)
    ok, output = under_lease(state, host, arm)
    if not ok and GUARD_BEGAN not in output.stdout_lines:
        raise StepFailedError(f"{step.name}: could not begin, so nothing was changed: {tail(output)}", code="RW0740")
    if not ok:
        raise TakenBackError(f"{step.name}: the change failed and was taken back: {tail(output)}", code="RW0716")
    if not _confirm(state, host, step):
        raise StepFailedError(
            f"{step.name}: no new SSH connection could confirm the change within {step.seconds} s; "
            "the host takes it back by itself",
            code="RW0717",
        )


GUARD_BEGAN = "the change begins"
"""What guard_arm.sh prints when the way back is armed."""


def undo_script(step: Guarded) -> str:
    """What the host runs to take a guarded change back, from a timer of systemd's."""
    # pyinfra ends standard input with a line break, which counts for the digest.
    return f"{DOCKER_ENVIRONMENT}{step.undo.rstrip()}\n"


def _arm(step: Guarded) -> str:
    unit, undo = guard_unit(step.name), guard_file(step.name)
    digest = hashlib.sha256(undo_script(step).encode()).hexdigest()
    words = {"unit": unit, "folder": undo.rpartition("/")[0], "undo": undo, "sum": digest}
    trial = {"trial": guard_trial(step.name), "trying": step.trial}
    return durable_script("guard_arm", **words, **trial, seconds=step.seconds, change=step.script)


def _confirm(state: State, host: Host, step: Guarded) -> bool:
    confirm = durable_script("guard_confirm", unit=guard_unit(step.name), trial=guard_trial(step.name))
    disarm = StringCommand("sh", "-c", QuoteString(confirm))
    deadline = time.monotonic() + step.seconds
    while time.monotonic() < deadline:
        try:
            return over_new_connection(state, host, disarm, step.seconds)
        except LOST:
            time.sleep(0.5)
    return False


def beside(state: State, host: Host, work: Callable[[], None]) -> Callable[[], None]:
    """Work on a host that goes on beside its later operations, by the arguments of the one that runs on it now."""
    asked = _global_arguments(state, host)

    def carry_out() -> None:
        _ARGUMENTS.set(asked)
        work()

    return carry_out


def _global_arguments(state: State, host: Host) -> dict[str, Any]:
    """How commands run on a host (`_sudo` and the like): as its data says, or the operation that runs on it now."""
    if (asked := _ARGUMENTS.get()) is not None:
        return dict(asked)
    found, _ = arguments.pop_global_arguments(state, host, {})
    asked = {**cast(dict[str, Any], found), **cast(dict[str, Any], host.current_op_global_arguments or {})}
    return {key: asked[key] for key in arguments.CONNECTOR_ARGUMENT_KEYS if key in asked}


def over_new_connection(state: State, host: Host, command: StringCommand, seconds: int) -> bool:
    """Run a command over an SSH connection made just now. Raises one of LOST when none can be made.

    seconds: the limit of the command on this side.
    """
    connector = type(host.connector)(state, host)
    connector.connect()
    try:
        ok, _output = connector.run_shell_command(command, **{**_global_arguments(state, host), "_timeout": seconds})
        return ok
    finally:
        client = getattr(connector, "client", None)
        if client is not None:
            client.close()
