"""Automatic checks of a host: one timer, and a list of checks that any concern may extend. Pure.

A check is a script that prints its finding. It exits with 0 when all was well, and otherwise after a repair, or when
a repair failed. No check runs while a run works on the host.
"""

from rackwright.concerns.watch.units import (
    KEPT_PORT,
    PAUSED,
    TRACE,
    WATCH_FILES,
    WATCH_SERVICE,
    WATCH_TIMER,
    WATCHED,
    check_file,
    repairs_file,
    watch_files,
)

__all__ = [
    "KEPT_PORT",
    "PAUSED",
    "TRACE",
    "WATCHED",
    "WATCH_FILES",
    "WATCH_SERVICE",
    "WATCH_TIMER",
    "check_file",
    "repairs_file",
    "watch_files",
]
