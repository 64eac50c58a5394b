"""Warnings of Ansible's commands, from their error output: no part of a fleet is missing in silence. Pure."""

from __future__ import annotations

from collections.abc import Iterator

MARKS = ("[WARNING]: ", "[ERROR]: ")
QUIET = ("[DEPRECATION WARNING]", "Invalid characters were found in group names but not replaced")
"""Warnings that say nothing about hosts: names of groups stay as they are written."""
SHOWN = 10
"""Remarks that are shown; of the others their number."""
DETAILS = ("<<< caused by >>>", "Origin: ")
"""Begin what repeats a remark at length."""


def remarks(errors: str) -> list[str]:
    """Return each warning as one line, in their order, each once."""
    found = list(dict.fromkeys(text for text in _texts(errors) if not any(quiet in text for quiet in QUIET)))
    more = [f"and {len(found) - SHOWN} more warnings of Ansible's"] if len(found) > SHOWN else []
    return [*found[:SHOWN], *more]


def _texts(errors: str) -> Iterator[str]:
    """Yield the paragraphs that begin with a mark, and lines that a user's program printed before any of them."""
    for paragraph in errors.replace("\r", "").split("\n\n"):
        text = ""
        for row in paragraph.splitlines():
            mark = next((mark for mark in MARKS if row.startswith(mark)), "")
            if mark or row.startswith("[DEPRECATION"):
                yield from _whole(text)
                text = row.removeprefix(mark).strip()
            elif text:
                text = f"{text} {row.strip()}"
        yield from _whole(text)


def _whole(text: str) -> Iterator[str]:
    if text and not text.startswith(DETAILS):
        yield text
