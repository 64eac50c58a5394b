"""pyinfra's own lines about hosts (-v, failed facts), made harmless: colours of its own stay, nothing else.

Its "Press enter", without a user to press it, is one line with the next command, in place of a traceback.
"""

from __future__ import annotations

import logging
import re
from typing import Any

import click
from pyinfra import logger
from pyinfra.api.output import set_echo

from rackwright.adapter.patch import patch
from rackwright.adapter.prompt import answer_to
from rackwright.masks import without_logins
from rackwright.messages import RackwrightError, paragraph

_PAGE = "docs/how-to/host-keys.md"
_REINSTALLED = (
    "If it was reinstalled: rackwright rebuild INVENTORY --limit HOST compares the new key, and accepts it; if not, "
    f"another machine may answer in its place: {_PAGE}"
)
_INSTEAD = {"If this is expected, you can remove the bad key using:": _REINSTALLED, "    ssh-keygen -R": ""}
"""By how pyinfra's lines begin: what is said in their place, or nothing."""
_COLOUR = re.compile(r"(\x1b\[(?:[01]|3[1-7]|9[0-7])m)")
"""Styles that pyinfra asks click for: bold, and letters that are not black."""


def harmless(text: str) -> str:
    """Return a text of several lines that may be coloured, and do nothing else to a terminal."""
    return "".join(part if _COLOUR.fullmatch(part) else without_logins(paragraph(part)) for part in _COLOUR.split(text))


class _Harmless(logging.Filter):
    """Lets every record pass, with a harmless text; advice that would keep a host from `rackwright rebuild` is ours."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        text = next((ours for start, ours in _INSTEAD.items() if text.startswith(start)), text)
        record.msg, record.args = harmless(text), ()
        return bool(text)


_FILTER = _Harmless()


def _echo(message: Any = None, **more: Any) -> None:
    click.echo(harmless(message) if isinstance(message, str) else message, **more)


def tame_output() -> None:
    """Make harmless whatever pyinfra prints and logs in this process from now on. Safe to repeat."""
    set_echo(_echo)
    # A logger has each filter once.
    logger.addFilter(_FILTER)
    # It reports each lost connection as a traceback, beside the error that says so.
    logging.getLogger("paramiko").setLevel(logging.CRITICAL)


def rebuilt(error: str, host: str) -> str:
    """Return what to do next where pyinfra reports a changed host key; empty for another error."""
    return (
        f"; next, if it was reinstalled: rackwright rebuild INVENTORY --limit {host}; see {_PAGE}"
        if "host key error" in error
        else ""
    )


def _ask(prompt: object = "") -> str:
    try:
        return answer_to(prompt)
    except (EOFError, RuntimeError):  # RuntimeError: it was closed before the start (<&-)
        raise RackwrightError(
            "no answer is possible, since standard input is closed: what the lines above ask for was not done; next: "
            "the same command on a terminal, or with -y, which continues without the hosts that failed",
            code="RW1313",
        ) from None


def say_when_nobody_answers() -> None:
    """End pyinfra with that line when it asks a question and standard input is closed, from now on."""
    # Imported here, since it patches the whole process for gevent: right in pyinfra's own command, wrong in ours.
    from pyinfra_cli import cli  # noqa: PLC0415

    patch(cli, "input", _ask, builtin=True)
