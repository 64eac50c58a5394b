"""The exit codes of `rackwright`, one meaning each (docs/reference/exit-codes.md). Run records keep them as numbers."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Ends of a command. Before 0.2.0 a run that stopped with a mixed fleet was recorded as 3, too."""

    DONE = 0
    """Done; nothing is pending."""
    ERROR = 1
    """Refused or failed: the change is on no host, or nothing was to be changed."""
    PENDING = 2
    """Changes are pending, or something drifted."""
    ROLLED_BACK = 3
    """The change failed and was rolled back: every host is on the release that it had."""
    MANUAL_ACTION = 4
    """Rolling back failed on a host, or its end is unknown."""
    MIXED = 5
    """Stopped with the change on some hosts and not on others."""
    INTERRUPTED = 130
    """Ended by Ctrl-C, SIGTERM or SIGHUP; what shells report for SIGINT."""


def done_if(well: object) -> ExitCode:
    """Return DONE when it went well, else ERROR."""
    return ExitCode.DONE if well else ExitCode.ERROR
