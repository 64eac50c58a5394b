"""Errors that a user can cause and fix: printed as text, never as a traceback."""

from __future__ import annotations

from pyinfra.api.exceptions import PyinfraError

from rackwright.printable import paragraph


class RackwrightError(PyinfraError):
    """What went wrong, on which host, file and key, and the next command to type.

    It is a pyinfra error, so the plain `pyinfra` command prints it as text and stops. Whatever a host, a registry or
    a hub has said in it does nothing to a terminal.

    `code`: what `rackwright explain` takes, from the table in data/refusals; a class has one where it is one cause.
    """

    code: str = ""

    def __init__(self, text: str = "", *, code: str = "") -> None:
        super().__init__(text)
        self.code = code or type(self).code

    @property
    def text(self) -> str:
        """The message without its code, for a message that has one of its own."""
        return paragraph(super().__str__())

    def __str__(self) -> str:
        return coded(self.code, self.text)


def coded(code: str, text: str) -> str:
    """A message as people see it: the code comes first, where no cut end of a line takes it away."""
    return f"{code}: {text}" if code else text


class SettingsError(RackwrightError):
    """A value in group_vars, host_vars, an inventory or on the command line is not usable."""


class ReadingError(RackwrightError):
    """What a host printed of itself could not be understood; the host is unknown, not absent."""
