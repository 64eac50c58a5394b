"""Danger zone: have a host drain itself and restart, wait until it is back, and have its endpoints proven.

The host does all of it but the proof alone: a host that was cut from here on comes back with its previous release.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rackwright.adapter.concurrency import sleep
from rackwright.adapter.connection import LOST, close, command, connect
from rackwright.adapter.host import Host, say
from rackwright.adapter.run_context import part_of
from rackwright.concerns.endpoint.proof.proof_row import Verdict
from rackwright.concerns.endpoint.switch.follow import NothingServesError, StoppedError, asked_before, switch_and_prove
from rackwright.concerns.endpoint.switch.steps import HostRestart, HostReturn
from rackwright.concerns.lease.own_leases import forget, hold_of
from rackwright.concerns.lease.take_lease import take_again
from rackwright.plan.change import Job
from rackwright.plan.jobstream import Event, Heard, text_of
from rackwright.record.cause import Cause, Reason
from rackwright.record.progress import SELDOM
from rackwright.remote.commands import remote
from rackwright.remote.errors import ConnectionLostError, LeaseLostError, NotStartedError, StepFailedError
from rackwright.remote.jobs import follow_job

RESTARTING = "restarting"
"""The event after which the connection may go at any time."""
PAUSE = 2
"""Seconds between two tries to log in."""
BOOT = "/proc/sys/kernel/random/boot_id"


class NotBackError(NothingServesError):
    """The host was restarted, and cannot be reached: the state of its endpoints is unknown."""

    code = "RW0742"
    reasons = (Reason(Cause.CONNECTION, "the restart"),)


@dataclass
class Restarted:
    """This run's knowledge of the hosts that it restarts."""

    answers: dict[str, dict[str, dict[str, Verdict]]] = field(default_factory=dict)
    """Earlier answers, by host and endpoint."""
    ordered: set[str] = field(default_factory=set)
    """Hosts that go down, or have done so."""


def restart_host(host: Host, step: HostRestart) -> None:
    """Have a host drain itself and restart. Raises StepFailedError when it does not."""
    try:
        answers = {proof.endpoint: asked_before(host, proof) for proof in step.proofs}
        part_of(host.state, Restarted).answers[host.name] = answers
        order_restart(host, step.job)
    except (*LOST, ConnectionLostError, LeaseLostError):
        # An earlier run that was killed may have ordered a restart, which takes place as late as now.
        if not _is_in_another(host, step.boot):
            raise
        say(host, "  an earlier run has restarted it")
    part_of(host.state, Restarted).ordered.add(host.name)
    forget(host)


def return_and_prove(host: Host, step: HostReturn, check: Callable[[], None] = lambda: None) -> None:
    """Wait until a restarted host is back, then prove its endpoints. Raises NotBackError, or what a switch raises.

    check: looks at the host before its endpoints are asked; its errors pass as they are.
    """
    began = time.monotonic()
    _wait(host, step)
    say(host, f"  it is back after {round(time.monotonic() - began)} s")
    if hold_of(host) is None:  # one that resumes has taken the lease since the restart
        take_again(host)
    check()
    answers = part_of(host.state, Restarted).answers.get(host.name, {})
    try:
        for proof in step.proofs:
            switch_and_prove(host, proof, answers.get(proof.endpoint, {}))
    except StepFailedError as error:
        raise _not_the_releases(error) from None


def _not_the_releases(error: StepFailedError) -> StepFailedError:
    """Stop the run and hold: what fails after a restart was proven before it, so the release is not at fault."""
    reasons = tuple(
        Reason(Cause.OTHER, reason.check) if reason.cause is Cause.CHECK else reason for reason in _reasons(error)
    )
    if isinstance(error, NothingServesError | StoppedError):
        return NothingServesError(error.text, reasons, code=error.code)
    return error if isinstance(error, NotStartedError) else StepFailedError(error.text, reasons, code=error.code)


def _reasons(error: BaseException | None) -> tuple[Reason, ...]:
    found = error.reasons if isinstance(error, StepFailedError) else ()
    return tuple(dict.fromkeys((*found, *_reasons(error.__cause__)))) if error else ()


def order_restart(host: Host, job: Job) -> None:
    """Follow the job until it says that it restarts; what becomes of the connection then says nothing."""
    going = False

    def heed(heard: Heard) -> None:
        nonlocal going
        if isinstance(heard, Event) and heard.kind == RESTARTING:
            going = True
            say(host, "  drained: it restarts")
        else:
            say(host, f"  {text_of(heard)}")

    try:
        ended = follow_job(host, job, heed)
    except ConnectionLostError:
        return  # the job keeps running; the restart may have cut the connection
    except StepFailedError:
        if going:
            return
        raise
    if not going:
        raise StepFailedError(
            f"{job.title}: {ended.text}; its last lines are above; it was not restarted", code="RW0743"
        )


def _wait(host: Host, step: HostReturn) -> None:
    """Log in again and again until the host is in another boot."""
    began, reported, why = time.monotonic(), time.monotonic(), "it did not go down"
    while time.monotonic() - began < step.seconds:
        sleep(PAUSE)
        try:
            if _is_in_another(host, step.boot):
                return
        except (*LOST, StepFailedError) as error:
            why = str(error) or type(error).__name__
        if time.monotonic() - reported > SELDOM:
            reported = time.monotonic()
            say(host, f"  not back yet, {round(reported - began)} s: {why}")
    raise NotBackError(
        f"it is not back {step.seconds} s after its restart (--timeout): {why}; "
        "next: its console (BMC), and when it is up: rackwright resume"
    )


def _is_in_another(host: Host, boot: str) -> bool:
    return boot_of(host) not in ("", boot)


def boot_of(host: Host) -> str:
    """Return the host's boot now, by a login of its own; empty when it cannot be read."""
    close(host)
    connect(host)
    ok, output = remote(host, command("cat", script=BOOT), timeout=PAUSE * 10, quiet=True)
    return "\n".join(output.stdout_lines).strip() if ok else ""
