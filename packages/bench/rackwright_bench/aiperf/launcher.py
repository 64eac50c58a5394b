"""Runs aiperf, in aiperf's own environment, for as long as its parent lives. Imports nothing of Rackwright.

Standard input is a pipe. Its first line is the endpoint's API key, or empty: aiperf takes one as an argument alone, so
it becomes one within this process, where neither `ps` nor /proc shows it, and no child has it in its environment. The
pipe then stays silent. When its other end is gone, by kill -9 too, so is aiperf with all of its workers: no endpoint is
left under a load that is not measured.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
from typing import BinaryIO


def main() -> None:
    """`launcher.py profile ...`: `python -m aiperf profile ...`, with the key."""
    pipe = _own_pipe()
    if key := pipe.readline().strip().decode():
        sys.argv += ["--api-key", key]
    threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()
    runpy.run_module("aiperf", run_name="__main__", alter_sys=True)


def _own_pipe() -> BinaryIO:
    """Return standard input, where no child has it; aiperf gets an empty one. Unbuffered: only one line is read."""
    pipe = os.fdopen(os.dup(0), "rb", buffering=0)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return pipe


def _end_with(pipe: BinaryIO) -> None:
    """Kill this process group, which is aiperf's own, at the end of the pipe."""
    while pipe.read(1):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":  # aiperf's workers import this file again
    main()
