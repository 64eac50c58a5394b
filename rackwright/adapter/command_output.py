"""The output of a command on a host, as far as anybody here asks; pyinfra's own class is behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Printed(Protocol):
    """The lines of a command: of its standard output, of its standard error, and of both as they came."""

    @property
    def stdout_lines(self) -> list[str]:
        """Return the lines of standard output."""
        ...

    @property
    def stderr_lines(self) -> list[str]:
        """Return the lines of standard error."""
        ...

    @property
    def output_lines(self) -> list[str]:
        """Return the lines of both, as they came."""
        ...


def tail(output: Printed) -> str:
    """Return the last lines that a command printed, errors preferred."""
    return last_of(output.stderr_lines or output.stdout_lines)


def last_of(lines: Sequence[str]) -> str:
    """Return the last fifteen of these lines, or a sentence for none."""
    return "\n".join(lines[-15:]) or "it printed nothing"
