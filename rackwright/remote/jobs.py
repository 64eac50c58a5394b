"""Jobs on a host: started or joined, followed until they end. The host runs them alone (job_scripts.py)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from rackwright.adapter.command_output import Printed, tail
from rackwright.adapter.host import Host, logger, say
from rackwright.adapter.run_context import RunningJobs, part_of
from rackwright.messages import ReadingError, coded, counted
from rackwright.paths import job_unit
from rackwright.plan.change import Job, Shell
from rackwright.plan.drain_end import DRAINED, parse_drain
from rackwright.plan.jobstream import DAMAGED, PROGRESS, Event, Heard, JobStream, text_of
from rackwright.record.journal import note
from rackwright.record.progress import Calm, Meter, TimeToGo
from rackwright.remote import job_scripts
from rackwright.remote.commands import command_of, remote, under_lease
from rackwright.remote.download_slots import Slots
from rackwright.remote.errors import ConnectionLostError, NotStartedError, StepFailedError
from rackwright.remote.fleet_progress import FleetProgress
from rackwright.remote.transfers import Transfers
from rackwright.settings.secret import Secret


def run_job(host: Host, job: Job) -> None:
    """Start or join a job, show what it prints, and wait for its end. Raises StepFailedError."""
    ended = show_job(host, job, lambda text: say(host, f"  {text}"))
    if ended.status != 0:
        raise_or_report(host, job, f"{job.title}: {ended.text}; its last lines are above")


def raise_or_report(host: Host, job: Job, text: str) -> None:
    """Report the failure of a job that is for other hosts. Raises StepFailedError for any other one."""
    if not job.helps:
        raise StepFailedError(text, code=job.code)
    say(host, f"  {coded(job.code, text)}; the other hosts look for another source", "yellow")


def show_job(
    host: Host, job: Job, show: Callable[[str], None], begun: Callable[[], None] = lambda: None
) -> job_scripts.Ended:
    """Start or join a job in its turn, show what is worth a line, and wait for its end. `begun` is called once it runs.

    Raises NotStartedError, ConnectionLostError.
    """

    def tell(others: int) -> None:
        say(host, f"  {job.title}: queued: {counted(others, 'host')} downloading (downloads.parallel)")

    calm, pace = Calm(), TimeToGo()

    def heed(heard: Heard) -> None:
        text = pace.with_remaining(text_of(heard)) if isinstance(heard, Event) else heard
        if calm.says(heard, pace.stalled):
            show(text)

    with part_of(host.state, Slots).one(host.name, job.at_once, tell):
        ended = follow_job(host, job, heed, begun)
    if ended.status == job_scripts.MISTAKE:
        note("settings", host=host.name, text=job.title)
    return ended


def follow_job(
    host: Host, job: Job, heed: Callable[[Heard], None], begun: Callable[[], None] = lambda: None
) -> job_scripts.Ended:
    """Start or join a job, hand on what it says, lines and events, and wait for its end. `begun`: called once it runs.

    Raises NotStartedError, ConnectionLostError.
    """
    _note(host, job, "began", after=job.after or None)
    ended: job_scripts.Ended | None = None
    running = part_of(host.state, RunningJobs)
    try:
        nonce = _start(host, job)
        running.add(host.name)
        begun()
        ended = _follow(host, job, JobStream(nonce), heed)
        running.remove(host.name)
    finally:
        part_of(host.state, Transfers).end(host.name, job.transfer)
        part_of(host.state, FleetProgress).forget(host.name, job.name)
        done = ended is not None and ended.status == 0
        _note(host, job, "done" if done else "failed")
    return ended


def _note(host: Host, job: Job, state: str, **more: object) -> None:
    if not job.outside:
        note("job", host=host.name, job=job.name, title=job.title, state=state, **more)


def _start(host: Host, job: Job) -> str:
    """Start a job, or join it. Returns its nonce."""
    start = Shell(job_scripts.start_script(job), stdin=Secret(job_scripts.payload(job)))
    # One that has begun already is joined, so it may be sent twice.
    send = partial(remote, host, command_of(start)) if job.waits else partial(under_lease, host, start)
    ok, output = send(twice=True)
    # Before a switch the host is read again once another one has ended: line_up waits for that.
    if not ok and not job.trial:
        # Where it has ended by now, nothing is in the way.
        let_end(host, job, lambda heard: say(host, f"  {text_of(heard)}"))
        ok, output = send(twice=True)
    if not ok:
        raise NotStartedError(f"{job.title}: could not be started: {tail(output)}", code="RW0715")
    try:
        started = job_scripts.parse_started(output.stdout_lines)
    except ReadingError as error:
        raise StepFailedError(f"{job.title}: {error.text}", code=error.code) from error
    if started.joined:
        say(host, f"{job.title}: already under way on the host, joining it")
    return started.nonce


def let_end(host: Host, job: Job, heed: Callable[[Heard], None]) -> job_scripts.Ended | None:
    """Wait for a job of the same name and another aim that an earlier run has begun: it outlives its lease.

    Returns how it ended; None without one. Raises StepFailedError.
    """
    other = _other(host, job)
    if other is None:
        return None
    say(host, f"waiting for {job_unit(job.name)}, {other.text}; Ctrl-C leaves it running", "yellow")
    ended = _follow(host, replace(job, takers=()), JobStream(other.nonce), heed)
    say(host, f"{job_unit(job.name)} {ended.text}; continuing", "yellow")
    return ended


def _other(host: Host, job: Job) -> job_scripts.OtherJob | None:
    ok, output = remote(host, command_of(Shell(job_scripts.other_script(job), timeout=30)), twice=True)
    try:
        return job_scripts.parse_other(output.stdout_lines) if ok else None
    except ReadingError as error:
        raise StepFailedError(f"{job.title}: {error.text}", code=error.code) from error


def _follow(host: Host, job: Job, stream: JobStream, heed: Callable[[Heard], None]) -> job_scripts.Ended:
    meter, began, released = Meter(), time.monotonic(), False
    while True:
        update = _update_of(job, *_ask(host, job, _look(job, stream, time.monotonic() - began)))
        for heard in stream.take(update.log, update.events):
            _hand_on(host, job, heard, meter, heed)
        if not update.running:
            for heard in stream.end():
                _hand_on(host, job, heard, meter, heed)
            return job_scripts.Ended(update.status, update.cut)
        if not released and part_of(host.state, Transfers).is_over(host, job):
            _ask(host, job, Shell(job_scripts.release_script(job.name, stream.nonce), timeout=30))
            released = True


def _ask(host: Host, job: Job, step: Shell) -> tuple[bool, Printed]:
    """Ask a host for something of a job, which it may be asked twice. Raises ConnectionLostError."""
    try:
        if job.waits:
            return remote(host, command_of(step), twice=True)
        return under_lease(host, step, writes=False, twice=True)
    except ConnectionLostError as error:
        raise ConnectionLostError(f"{job.title}: {error.text}: {job.alone}") from error


def _look(job: Job, stream: JobStream, seconds: float) -> Shell:
    script = job_scripts.follow_script(job.name, stream.nonce, stream.log_bytes, stream.event_bytes, seconds)
    return Shell(script, timeout=60)


def _update_of(job: Job, ok: bool, output: Printed) -> job_scripts.JobUpdate:
    """Return the part of log and events that one look brought. Raises StepFailedError."""
    if not ok:
        raise StepFailedError(f"{job.title}: its state could not be read: {tail(output)}", code="RW0706")
    try:
        return job_scripts.parse_update(output.stdout_lines)
    except ReadingError as error:
        raise StepFailedError(f"{job.title}: {error.text}", code=error.code) from error


def _hand_on(host: Host, job: Job, heard: Heard, meter: Meter, heed: Callable[[Heard], None]) -> None:
    """Hand on what a job says, and note what the record keeps of it."""
    if isinstance(heard, Event) and heard.kind == DRAINED and (drain := parse_drain(heard.text)):
        note(DRAINED, host=host.name, **drain.fields)
        heard = replace(heard, text=str(drain))
    heed(heard)
    if isinstance(heard, Event) and heard.kind == DAMAGED:
        note(DAMAGED, host=host.name, job=job.name, text=heard.text)
    if isinstance(heard, Event) and heard.kind == PROGRESS and not job.outside:
        _note_progress(host, job, heard.text, meter)


def _note_progress(host: Host, job: Job, text: str, meter: Meter) -> None:
    now = time.monotonic()
    if fields := meter.progress_fields(text, now):
        note("progress", host=host.name, job=job.name, **fields)
    if summary := part_of(host.state, FleetProgress).note(host.name, job.name, text, now):
        logger.info(summary)
