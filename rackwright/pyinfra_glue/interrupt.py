"""Ctrl-C and SIGTERM: what keeps running is named, leases are released, the exit is 130; pyinfra alone exits 0."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

import click
import gevent
from gevent.pool import Pool
from pyinfra.context import ctx_state

from rackwright.runs.handover import received

STATUS = 130
"""What shells report for a command that SIGINT has ended."""
WORDS = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}


def fail_on_interrupt() -> None:
    """From now on SIGINT and SIGTERM end this pyinfra process with STATUS; so does the death of its rollout."""
    for number in WORDS:
        signal.signal(number, _stop)
    if received().parent == os.getppid():
        gevent.spawn(_end_with, os.getppid())


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        gevent.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - Python passes both
    # A second one must end even a process that hangs while it disconnects.
    for each in WORDS:
        signal.signal(each, signal.SIG_DFL)
    _say(
        f"\n--> Stopped by {WORDS[signal.Signals(number)]}: jobs that hosts have begun go on there by themselves; "
        "run the same command again, it joins them and does what is left"
    )
    # Raised right here it may cut an SSH packet in two; then no lease could be given back over that connection.
    gevent.get_hub().loop.run_callback_threadsafe(_end)


def _say(text: str) -> None:
    try:
        click.echo(text, err=True)
    except OSError:
        # Whoever read it is gone. What pyinfra prints while it disconnects must not fail too: it gives leases back.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())


def _end() -> None:
    state = ctx_state.get()
    if state is not None:
        # Operations go on until their commands end: with its places taken by them, nothing could be disconnected.
        state.pool = Pool()
    gevent.get_hub().handle_system_error(SystemExit, SystemExit(STATUS))
