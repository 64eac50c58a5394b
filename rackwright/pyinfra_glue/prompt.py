"""pyinfra's "Press enter" where nobody can press it: one line with the next command, in place of a traceback."""

from __future__ import annotations

import builtins

from rackwright.errors import RackwrightError


def _ask(prompt: object = "") -> str:
    try:
        return builtins.input(prompt)
    except EOFError:
        raise RackwrightError(
            "nobody answers, since standard input is closed: what the lines above ask for was not done; next: the same "
            "command on a terminal, or with -y, which goes on without the hosts that failed",
            code="RW1313",
        ) from None


def say_when_nobody_answers() -> None:
    """From now on a question of pyinfra's to a closed standard input ends it with that line."""
    # Imported here, since it patches the whole process for gevent: right in pyinfra's own command, wrong in ours.
    from pyinfra_cli import cli  # noqa: PLC0415

    setattr(cli, "input", _ask)  # noqa: B010 - pyinfra's module has no such name: it uses the built-in one
