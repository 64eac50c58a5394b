"""Writes down arguments and environment of every program that processes, or what they start, execute.

`python -m tests.lab.exec_watch FILE PID...` prints "attached" once it watches, and ends by a signal. A watched process
stops at forks and at execs alone: strace, attached to processes that run already, stops them at each system call,
since it can no longer give them its filter (`--seccomp-bpf`). See ptrace(2), PTRACE_SEIZE.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from signal import SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU

CONT, SEIZE, LISTEN = 7, 0x4206, 0x4208
FORK, VFORK, CLONE, EXEC, STOP = 1, 2, 3, 4, 128
"""Events, as a wait status has them; a request follows them by its bit."""
FOLLOWED = sum(1 << event for event in (FORK, VFORK, CLONE, EXEC))
WALL = 0x40000000
"""Wait for threads as well."""

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Attach to all threads of the processes, say so, and write."""
    file, *pids = sys.argv[1:]
    with Path(file).open("wb", buffering=0) as out:
        for thread in threads_of(pids):
            _ptrace(SEIZE, thread, FOLLOWED)
        print("attached", flush=True)
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, WALL)
                if os.WIFSTOPPED(status):
                    go_on(pid, status, out.write)


def threads_of(pids: Iterable[str]) -> Iterator[int]:
    """Return all threads of processes; one that has ended in the meantime has none."""
    for pid in pids:
        with suppress(OSError):
            yield from [int(task.name) for task in Path("/proc", pid, "task").iterdir()]


def go_on(pid: int, status: int, write: Callable[[bytes], object]) -> None:
    """Let a stopped thread continue as it would without a watch; write its program down if it has another."""
    signal, event = os.WSTOPSIG(status), status >> 16
    if event == EXEC:
        with suppress(OSError):  # it was killed in the meantime
            write(started(pid))
    if event == STOP and signal in (SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU):
        _ptrace(LISTEN, pid, 0)
    else:
        _ptrace(CONT, pid, 0 if event else signal)


def started(pid: int) -> bytes:
    """Arguments and environment of a program that begins just now, as one line."""
    found = [Path("/proc", str(pid), name).read_bytes() for name in ("cmdline", "environ")]
    return b" | ".join(text.replace(b"\0", b" ").replace(b"\n", b"\\n") for text in found) + b"\n"


def _ptrace(request: int, pid: int, data: int) -> None:
    """Call ptrace; a thread that was killed in the meantime has nothing to ask for."""
    _libc.ptrace(ctypes.c_long(request), ctypes.c_long(pid), ctypes.c_void_p(0), ctypes.c_void_p(data))


if __name__ == "__main__":
    main()
