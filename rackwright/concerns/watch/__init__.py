"""What a host looks after by itself: one timer, and a list of checks that any concern may join. Pure.

A check is a script that says what it found. It ends with 0 when all was well, and otherwise when it had to repair
something, or could not. None runs while somebody is at work on the host.
"""

from rackwright.concerns.watch.units import (
    KEPT_PORT,
    PAUSED,
    TRACE,
    WATCH_FILES,
    WATCH_SERVICE,
    WATCH_TIMER,
    check_file,
    repairs_file,
    watch_files,
)

__all__ = [
    "KEPT_PORT",
    "PAUSED",
    "TRACE",
    "WATCH_FILES",
    "WATCH_SERVICE",
    "WATCH_TIMER",
    "check_file",
    "repairs_file",
    "watch_files",
]
