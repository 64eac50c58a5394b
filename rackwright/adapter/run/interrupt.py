"""Ctrl-C, SIGTERM and SIGHUP end what they reach, at any prompt and any wait, with one sentence; the exit is 130.

pyinfra alone exits 0. A second signal ends a process that hangs while it disconnects.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any

import click
import gevent
from gevent.pool import Pool
from pyinfra.api.exceptions import PyinfraError
from pyinfra.context import ctx_state

from rackwright.adapter.patch import held, patch
from rackwright.adapter.run.current_run import has_executed
from rackwright.adapter.run_context import RunningJobs, part_of
from rackwright.exit_codes import ExitCode
from rackwright.messages import counted
from rackwright.processes import ENDING, end_undisturbed, interruption
from rackwright.record.handover import received

STUCK = 0.5
"""Seconds after which gevent's loop is blocked, by a prompt in a greenlet: that greenlet is then ended."""
AGAIN = 0.5
"""Seconds within which a second signal is the first one: a terminal's, and that of the command above."""
NAMED = 5
"""Hosts that are listed; of more, their number."""

Handler = Callable[[int, FrameType | None], Any]


def fail_on_interrupt() -> None:
    """Make these signals end this pyinfra process with 130 from now on. Safe to repeat."""
    _handle(_stop)


@cache
def die_with_rollout() -> None:
    """Make the death of the rollout that has started this process end it as well."""
    if _is_below_a_rollout():
        gevent.spawn(_end_with, os.getppid())


def _is_below_a_rollout() -> bool:
    return received().parent == os.getppid()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        gevent.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt in the main greenlet on these signals within the block, whatever the others do."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    hub: Any = gevent.get_hub()
    # gevent prints a traceback of all that is not in here; connecting raises the other one again.
    patch(hub, "NOT_ERROR", (*held(hub, "NOT_ERROR"), KeyboardInterrupt, PyinfraError))
    before = {number: signal.getsignal(number) for number in ENDING}
    _handle(_interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _handle(handler: Handler) -> None:
    for number in ENDING:
        # One that was ignored from the start on (nohup) stays ignored.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - Python passes both
    _end_main(interruption(number))


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - Python passes both
    if not _is_below_a_rollout():
        _say(f"\n--> Stopped by {ENDING[signal.Signals(number)]}: {_remaining()}")
    _end_main(SystemExit(ExitCode.INTERRUPTED))


def _remaining() -> str:
    """Return what of this run continues on hosts, and how to do the rest."""
    state: Any = ctx_state.get()
    hosts = sorted(part_of(state, RunningJobs).hosts) if state is not None else []
    if hosts:
        names = ", ".join(hosts) if len(hosts) <= NAMED else counted(len(hosts), "host")
        return f"jobs that have begun on {names} keep running there; run the same command again: it joins them"
    if state is not None and has_executed(state):
        return "no job runs on a host; run the same command again: it does what remains"
    return "nothing was begun on any host"


def _say(text: str) -> None:
    try:
        click.echo(text, err=True)
    except OSError:
        # The reader is gone. What pyinfra prints while it disconnects must not fail too: it gives leases back.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())


def _end_main(error: BaseException) -> None:
    """Raise an error in the main greenlet."""
    since = time.monotonic()

    def leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - Python passes both
        if time.monotonic() - since > AGAIN:
            os._exit(ExitCode.INTERRUPTED)

    _handle(leave)
    end_undisturbed()
    if gevent.getcurrent().parent is None:
        _free_pool()
        raise error
    raised: list[BaseException] = []

    def throw() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if not raised:
            _free_pool()
            gevent.get_hub().handle_system_error(type(error), error)

    def blocked(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - Python passes both
        raised.append(error)
        _free_pool()
        raise error

    signal.signal(signal.SIGALRM, blocked)
    signal.setitimer(signal.ITIMER_REAL, STUCK)
    # Raised right here it may cut an SSH packet in two; then no lease could be given back over that connection.
    gevent.get_hub().loop.run_callback_threadsafe(throw)


def _free_pool() -> None:
    state: Any = ctx_state.get()
    if state is not None:
        # Operations continue until their commands end: while they fill the pool, nothing could be disconnected.
        state.pool = Pool()
