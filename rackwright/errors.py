"""Errors that a user can cause and mend: printed as text, never as a traceback."""

from __future__ import annotations

from pyinfra.api.exceptions import PyinfraError


class RackwrightError(PyinfraError):
    """What went wrong, on which host, file and key, and the next command to type.

    It is a pyinfra error, so the plain `pyinfra` command prints it as text and stops.
    """


class SettingsError(RackwrightError):
    """A value in group_vars, host_vars, an inventory or on the command line is not usable."""


class ReadingError(RackwrightError):
    """What a host printed of itself could not be understood; the host is unknown, not absent."""
