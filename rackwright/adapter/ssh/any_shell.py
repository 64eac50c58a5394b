"""A command as every login's shell hands it to sh: csh ends quotes at a line's end, fish reads a backslash in them."""

from __future__ import annotations

import shlex

_CODES = str.maketrans({"\\": "\\0134", "\n": "\\0012", "!": "\\0041"})
"""Characters that csh or fish change between single quotes, as `printf %b` takes them."""
WORD = 150
"""Characters of the command in one word: csh of Debian takes words of 1 KiB."""
MOST = 120_000
"""Bytes that go as one argument; Linux takes 128 KiB."""


def for_any_shell(command: str) -> str:
    """Return the command without what a login's shell reads in a way of its own; one that gets too long as it is."""
    if command.translate(_CODES) == command:
        return command
    pieces = [command[at : at + WORD] for at in range(0, len(command), WORD)]
    words = " ".join(shlex.quote(piece.translate(_CODES)) for piece in pieces)
    found = f"""sh -c 'eval "$(printf %b "$@")"' sh {words}"""
    return found if len(found.encode(errors="surrogateescape")) <= MOST else command
