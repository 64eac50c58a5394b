"""How programs of a host keep out of the way of its endpoint: idle I/O, no page cache, no life after their parent."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
from contextlib import suppress

DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of linux/prctl.h."""
NICE = 5


def quiet_disk() -> None:
    """Set idle I/O priority: a server on this host comes first. Without kernel support, continue without it."""
    number = {"x86_64": 251, "aarch64": 30}.get(platform.machine())
    if number is not None:
        ctypes.CDLL(None).syscall(number, 1, 0, 3 << 13)
    os.setpriority(os.PRIO_PROCESS, 0, max(NICE, os.getpriority(os.PRIO_PROCESS, 0)))


def forget(handle: int, start: int, size: int) -> None:
    """Let the kernel drop these bytes of a file from its page cache, where an endpoint's weights may be instead."""
    with suppress(OSError):
        os.posix_fadvise(handle, start, size, os.POSIX_FADV_DONTNEED)


def die_with_parent() -> None:
    """End when the job ends. A container's first process has its parent outside, and ends with the container."""
    parent = os.getppid()
    if parent == 0:
        return
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before the kernel knew
        raise SystemExit(143)
