"""What a command printed on a host, as far as anybody here asks; pyinfra's own class is behind it."""

from __future__ import annotations

from typing import Protocol


class Printed(Protocol):
    """The lines of a command: of its standard output, of its standard error, and of both as they came."""

    @property
    def stdout_lines(self) -> list[str]: ...

    @property
    def stderr_lines(self) -> list[str]: ...

    @property
    def output_lines(self) -> list[str]: ...


def tail(output: Printed, lines: int = 15) -> str:
    """Last lines that a command printed, errors preferred."""
    chosen = output.stderr_lines or output.stdout_lines
    return "\n".join(chosen[-lines:]) or "it printed nothing"
