"""Texts of hosts as a terminal may show them. Pure."""

from __future__ import annotations


def printable(text: str) -> str:
    """One line without control characters, which would move the cursor or hide the rest."""
    return "".join(char if char.isprintable() else " " for char in text)
