"""Failures: those that end the program, and those that only end the use of a source."""

from __future__ import annotations

import errno

BUSY = 75
"""Exit status (EX_TEMPFAIL): another program fills the folder."""
MISTAKE = 78
"""Exit status (EX_CONFIG): only other arguments can help."""


class HandOnError(Exception):
    """A failure that ends the program, with its exit status."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status


class NoPiecesError(Exception):
    """A failure of a source: another one is asked. wait: seconds that it asks to be left alone."""

    def __init__(self, text: str, wait: float = 0) -> None:
        super().__init__(text)
        self.wait = wait


class WrongPiecesError(NoPiecesError):
    """A source sent what its own list, or the run's token, contradicts: it is not asked again."""


def of_disk(error: OSError, folder: str) -> HandOnError:
    """Return the failure of a write."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return HandOnError(f"{folder}: no room is left on its disk; make room, and run again: what arrived is kept")
    return HandOnError(f"{folder}: {error.strerror or error}")
