"""Ctrl-C during the plain `pyinfra` command: tells what goes on without it, and exits 130; pyinfra alone exits 0."""

from __future__ import annotations

import signal
from types import FrameType

import click
import gevent
from gevent.pool import Pool
from pyinfra.context import ctx_state

STATUS = 130
"""What shells report for a command that SIGINT has ended."""


def fail_on_interrupt() -> None:
    """From now on SIGINT ends this process with STATUS."""
    signal.signal(signal.SIGINT, _stop)


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - Python passes both
    # A second Ctrl-C must end even a process that hangs while it disconnects.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    click.echo(
        "\n--> Stopped by Ctrl-C: jobs that hosts have begun go on there by themselves; "
        "run the same command again, it joins them and does what is left",
        err=True,
    )
    # Raised right here it may cut an SSH packet in two; then no lease could be given back over that connection.
    gevent.get_hub().loop.run_callback_threadsafe(_end)


def _end() -> None:
    state = ctx_state.get()
    if state is not None:
        # Operations go on until their commands end: with its places taken by them, nothing could be disconnected.
        state.pool = Pool()
    gevent.get_hub().handle_system_error(SystemExit, SystemExit(STATUS))
