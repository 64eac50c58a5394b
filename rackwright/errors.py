"""Errors that a user can cause and fix: printed as text, never as a traceback."""

from __future__ import annotations

from pyinfra.api.exceptions import PyinfraError

from rackwright.printable import paragraph


class RackwrightError(PyinfraError):
    """What went wrong, on which host, file and key, and the next command to type.

    It is a pyinfra error, so the plain `pyinfra` command prints it as text and stops. Whatever a host, a registry or
    a hub has said in it does nothing to a terminal.
    """

    def __str__(self) -> str:
        return paragraph(super().__str__())


class SettingsError(RackwrightError):
    """A value in group_vars, host_vars, an inventory or on the command line is not usable."""


class ReadingError(RackwrightError):
    """What a host printed of itself could not be understood; the host is unknown, not absent."""
