"""Texts for people: user errors that can be fixed, and what makes a host's texts harmless before they show.

Errors are printed as text, never as a traceback. What a host, an engine, a hub or a registry says is data: an escape
sequence in it would move the cursor, set the clipboard or hide what follows.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rackwright.adapter.bases import PyinfraError
from rackwright.adapter.concurrency import new_event, spawn
from rackwright.masks import hidden, without_logins

SLOW = 2.0
"""Seconds of a wait after which it is said what for."""
NAMED = 5
"""Hosts that are listed; of more, their number."""
FEW = 3
"""Files that a sentence names; of more, their number."""
LONGEST = 4000
"""Characters of one line that are kept: a screen and a half, and more than any sentence of Rackwright has."""
ASKED_FOR = 1 << 20
"""The same for a line that a user has asked for: a chat's answer, what a command of theirs prints."""
_SEQUENCES = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    "|\x1b[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)"  # OSC, DCS, SOS, PM, APC: clipboard, titles, links
    "|\x1b[ -/]*[0-~]"  # the short ones
)
_BREAKS = re.compile("\r\n|\r|\n")
_OUR_COMMAND = re.compile(r"\b(rackwright [a-z][^;\n]*?) INVENTORY\b")
_PYINFRAS_COMMAND = re.compile(r"\bpyinfra INVENTORY\b")
"""It takes an inventory in Python alone; of another kind the site's inventory/ansible.py makes one."""
_inventory: list[str] = []


def name_inventory(path: str) -> None:
    """Let commands that are printed from now on name this inventory; empty for none.

    A command without it is refused in a site that has several.
    """
    _inventory[:] = [shlex.quote(path)] if path else []


def shortest(path: str) -> str:
    """Return a path as it is typed from here."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def _named(text: str) -> str:
    """Return `text` with the inventory of this process in each command that has the place for one."""
    if not _inventory or "INVENTORY" not in text:
        return text
    name = _inventory[0]
    python = name if name.strip("'").endswith(".py") else ""
    pyinfra = f"pyinfra {python}" if python else f"RACKWRIGHT_ANSIBLE_INVENTORY={name} pyinfra inventory/ansible.py"
    text = _PYINFRAS_COMMAND.sub(lambda _: pyinfra, text)
    return _OUR_COMMAND.sub(lambda found: f"{found[1]} {name}", text)


def printable(text: str, keep: str = "", longest: int = LONGEST) -> str:
    """Return one line: escape sequences are gone, every other character that does not print is a blank.

    That covers control characters (C0, C1), bidirectional overrides, line separators of Unicode and lone surrogates.
    A secret that this process has read is a mask. keep: characters that stay anyway, such as a tab. longest:
    characters; what is cut off is counted.
    """
    text = _named(text)
    plain = hidden(text if text.isprintable() else _plain(text, keep))
    return plain if len(plain) <= longest else f"{plain[:longest]} [{len(plain) - longest} characters more]"


def _plain(text: str, keep: str) -> str:
    return "".join(char if char.isprintable() or char in keep else " " for char in _SEQUENCES.sub("", text))


@contextmanager
def waiting(what: Callable[[], str]) -> Iterator[None]:
    """Say what the block waits for, once it takes longer than SLOW seconds, and again at longer and longer intervals.

    what: words to follow `waiting for`, as they are by then; none while all have answered and the end is near.
    It goes to standard error: the output is an answer.
    """
    over = new_event()

    def tell() -> None:
        pause = SLOW
        while not over.wait(pause):
            with suppress(OSError, ValueError):
                if text := printable(what()):
                    print(f"rackwright: waiting for {text}", file=sys.stderr, flush=True)
            pause *= 5

    # Made here, and ended here: under gevent it is a greenlet, and no thread is left when gevent patches.
    teller = spawn(tell)
    try:
        yield
    finally:
        over.set()
        teller.join(SLOW)


def listed(names: Collection[str], whole: int) -> str:
    """Return `2 of 4 hosts: gpu01, gpu03`; of many, the first few; of none, no text."""
    if not names:
        return ""
    first, more = list(names)[:NAMED], len(names) - NAMED
    return f"{len(names)} of {counted(whole, 'host')}: {', '.join(first)}{f' and {more} more' if more > 0 else ''}"


def few(names: Sequence[str]) -> str:
    """Return `a, b, c and 8 more`."""
    more = len(names) - FEW
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:FEW])} and {more} more"


def counted(number: int, noun: str) -> str:
    """Return `1 host`, `2 hosts`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def paragraph(text: str, longest: int = LONGEST) -> str:
    """Return a text of several lines, each of them printable; tabs stay."""
    return "\n".join(printable(row, "\t", longest) for row in _BREAKS.split(text))


def printable_values(value: Any) -> Any:
    """Return a value as JSON knows it, with every text in it, keys included, as a paragraph."""
    if isinstance(value, str):
        return paragraph(value)
    if isinstance(value, Mapping):
        return {printable_values(key): printable_values(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [printable_values(inner) for inner in value]
    return value


class RackwrightError(PyinfraError):
    """An error: its cause, host, file and key, and the next command to type.

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
        return without_logins(paragraph(super().__str__()))

    def __str__(self) -> str:
        return coded(self.code, self.text)

    @property
    def message(self) -> str:
        """Return what pyinfra's own command prints; of an error without this name, the text alone."""
        return str(self)


def coded(code: str, text: str) -> str:
    """Return a message as people see it: the code comes first, where no cut end of a line takes it away."""
    return f"{code}: {text}" if code else text


class SettingsError(RackwrightError):
    """A value in group_vars, host_vars, an inventory or on the command line is not usable."""


class ReadingError(RackwrightError):
    """Output of a host about itself that could not be understood; the host is unknown, not absent."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Make what fails while the block writes this path one refusal that names it. Raises RackwrightError."""
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise RackwrightError(
            f"{path} cannot be written: {why}; next: another path, or its permissions and free space", code="RW1408"
        ) from error
