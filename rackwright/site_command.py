"""A command that a site names, run on the control machine by argv, for seconds that are counted under gevent too."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

OUTPUT = 1 << 20
"""Bytes of the output that are kept."""


@dataclass(frozen=True)
class CommandEnd:
    """The end of a command. status: its exit status, or what happened instead of one."""

    status: int | str
    output: str


def run_site_command(
    argv: Sequence[str], given: str, seconds: float, folder: Path, environment: Mapping[str, str] | None = None
) -> CommandEnd:
    """Run a command in a folder, with text on its standard input; its whole group is ended when the time is over.

    seconds: for the command; what it leaves behind keeps running.
    """
    program = str(folder / argv[0]) if "/" in argv[0] else argv[0]
    # Files and no pipes: gevent's `communicate` waits without a limit once all is written, and a process that the
    # command left behind would keep a pipe open.
    with TemporaryFile() as text, TemporaryFile() as printed:
        text.write(given.encode(errors="replace"))
        text.seek(0)
        try:
            process = subprocess.Popen(
                [program, *argv[1:]],
                cwd=folder,
                env=environment,
                stdin=text,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            return CommandEnd(f"cannot be run: {error.strerror}", "")
        status = _status(process, seconds)
        printed.seek(0)
        return CommandEnd(status, printed.read(OUTPUT).decode(errors="replace"))


def _status(process: subprocess.Popen[bytes], seconds: float) -> int | str:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"was ended after {seconds:g} s"
