"""Room for the connections of a large fleet: each is an open file of this process, and its shell allows few of them."""

from __future__ import annotations

import resource

from rackwright.messages import RackwrightError

UNLIMITED = resource.RLIM_INFINITY
A_HOST = 2
"""Open files for a host: its connection, or the one to its bastion, and now and then a new one beside it."""
OTHERS = 200
"""Open files for all else: modules, logs, pipes to programs, what the shell left open."""


def room_for(soft: int, hard: int, hosts: int) -> int:
    """Return the soft limit of open files that so many hosts need: the present one where it is enough.

    soft, hard: limits as the kernel has them, in files. Raises RackwrightError when the hard one is too low.
    """
    wanted = hosts * A_HOST + OTHERS
    if soft == UNLIMITED or soft >= wanted:
        return soft
    if hard != UNLIMITED and hard < wanted:
        raise RackwrightError(
            f"connections to {hosts} hosts take up to {wanted} open files, and this shell allows {hard}; nothing was "
            f"connected; next: ulimit -Hn {wanted}, or fewer hosts at a time by --limit",
            code="RW1321",
        )
    return wanted


def allow_open_files(hosts: int) -> None:
    """Let this process hold connections to so many hosts. Raises RackwrightError when the system forbids it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if (room := room_for(soft, hard, hosts)) != soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (room, hard))
