"""Danger zone: wait for a host that restarts with another driver, look, have its endpoints proven, or take it back."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from rackwright.adapter.concurrency import sleep
from rackwright.adapter.connection import command
from rackwright.adapter.host import Host, say
from rackwright.concerns.diagnosis.seen import KEPT, parse_kept
from rackwright.concerns.driver.judge import wrong_with
from rackwright.concerns.driver.step import DriverReturn
from rackwright.concerns.endpoint.switch.follow import NothingServesError, RolledBackError, UnknownEndError
from rackwright.concerns.endpoint.switch.restart_and_wait import (
    NotBackError,
    boot_of,
    order_restart,
    return_and_prove,
)
from rackwright.concerns.lease.own_leases import forget
from rackwright.hostside import host_script
from rackwright.messages import printable
from rackwright.plan.change import Shell
from rackwright.record.cause import Cause, Reason
from rackwright.remote.commands import command_of, remote, run_simple
from rackwright.remote.errors import ConnectionLostError, StepFailedError
from rackwright.remote.jobs import run_job

LOADING = 120
"""Seconds after its boot within which a host has loaded its driver."""
PAUSE = 3
"""Seconds between two looks."""
LONGEST = 300
"""Characters of a reason that a host keeps."""


class DriverBackError(RolledBackError):
    """The new driver failed, and the host serves with the one before again."""

    code = "RW4126"


def return_with_driver(host: Host, step: DriverReturn) -> None:
    """Prove a host that restarts with another driver; one that fails goes back. Raises StepFailedError.

    Of hosts that serve together none goes back alone: `taken_back` takes all of them.
    """
    try:
        return_and_prove(host, step, lambda: _check(host, step))
    except StepFailedError as error:
        if step.together or not goes_back(error):
            raise
        raise taken_back([(host, step)], error) from None
    say(host, f"  NVIDIA's driver is {step.version}")


def goes_back(error: StepFailedError) -> bool:
    """Return True if hosts whose switch failed so are to go back: they are there, and no other run has them."""
    away = isinstance(error, NotBackError | UnknownEndError | ConnectionLostError)
    return not away and not any(reason.cause is Cause.LEASE for reason in error.reasons)


def _check(host: Host, step: DriverReturn) -> None:
    _look(host, step.version, step.gpus)
    for job in step.checks:
        run_job(host, job)
        _refuse_broken_gpus(host)
    _join_domain(host, step)


def _join_domain(host: Host, step: DriverReturn) -> None:
    if step.domain is not None:
        run_simple(host, step.domain)


def _refuse_broken_gpus(host: Host) -> None:
    """Raise StepFailedError when the diagnosis that has just ended found a broken GPU. One without a report says so."""
    ok, output = remote(host, command("cat", script=KEPT), quiet=True)
    last = parse_kept("\n".join(output.stdout_lines)) if ok else None
    if last is None or last.report.error:
        say(
            host,
            f"  the GPUs were not tested: {last.report.error if last else 'the host has kept no report'}",
            "yellow",
        )
    elif last.verdict == "fail":
        raise StepFailedError(last.reason, (Reason(Cause.GPU, last.reason),), code="RW2657")


def _look(host: Host, version: str, gpus: int) -> None:
    """Wait until the host runs that driver. Raises StepFailedError with what is wrong when it does not."""
    until, script = time.monotonic() + LOADING, Shell(host_script("driver_seen"))
    while True:
        ok, output = remote(host, command_of(script))
        wrong = wrong_with(output.stdout_lines, version, gpus) if ok else "its driver could not be read"
        if not wrong:
            return
        if time.monotonic() > until:
            raise StepFailedError(f"NVIDIA's driver {version} does not run: {wrong}", code="RW4136")
        sleep(PAUSE)


Restarted = Sequence[tuple[Host, DriverReturn]]
"""Hosts that run another driver, with the step of each; of those that serve together the head is the first."""


def taken_back(restarted: Restarted, error: StepFailedError) -> StepFailedError:
    """Take hosts back to the driver of before; returns the error that says how that ended."""
    step = restarted[0][1]
    reasons = (Reason(Cause.OTHER, f"NVIDIA's driver {step.version}"),)
    if any(one.undo is None for _, one in restarted):
        text = f"{error.text}\nthere is no way back on this host, since no driver was staged from another one"
        return NothingServesError(
            f"{text}; next: look at it by hand: journalctl -k --grep NVRM", reasons, code="RW4146"
        )
    for host, one in restarted:
        say(host, f"  {error.text}", "yellow")
        say(host, f"  going back to NVIDIA's driver {one.old}", "yellow")
    try:
        _go_back(restarted, error.text)
    except StepFailedError as second:
        text = (
            f"NVIDIA's driver {step.version} failed: {error.text}\ngoing back to {step.old} failed too: {second.text}"
        )
        next_step = "next: its console; journalctl -k --grep NVRM; apt's log: /var/log/apt/term.log"
        return NothingServesError(f"{text}\nmanual action needed on this host; {next_step}", reasons, code="RW4146")
    text = f"NVIDIA's driver {step.version} failed, and {_subject(restarted)} with {step.old} again: {error.text}"
    return DriverBackError(f"{text}; next: another driver.version", reasons)


def _subject(restarted: Restarted) -> str:
    names = [host.name for host, _ in restarted]
    return "the host serves" if len(names) == 1 else f"{', '.join(names)} serve"


def _go_back(restarted: Restarted, why: str) -> None:
    """Put the driver of before back. Raises StepFailedError when the hosts do not serve with it.

    why: kept on the host, for those who look at it later.
    """
    if restarted[0][1].together:
        _each(restarted, lambda host, step: return_and_prove(host, replace(step, proofs=())))
    boots = dict[str, str]()
    text = printable(" ".join(why.split()), longest=LONGEST)

    def order(host: Host, step: DriverReturn) -> None:
        assert step.undo is not None
        boots[host.name] = boot_of(host)
        order_restart(host, replace(step.undo, script=f"why={shlex.quote(text)}\n{step.undo.script}"))
        forget(host)

    def prove(host: Host, step: DriverReturn) -> None:
        return_and_prove(host, replace(step, boot=boots[host.name]), lambda: _check_old(host, step))

    _each(restarted, order)
    _each([*restarted[1:], restarted[0]], prove)


def _check_old(host: Host, step: DriverReturn) -> None:
    _look(host, step.old, step.gpus)
    _join_domain(host, step)


def _each(restarted: Restarted, do: Callable[[Host, DriverReturn], None]) -> None:
    for host, step in restarted:
        try:
            do(host, step)
        except StepFailedError as error:
            if step.together:
                error.args = (f"{host.name}: {error.text}",)
            raise
