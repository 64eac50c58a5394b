"""What docs/tutorial.md quotes against what a real run prints; hashes, seconds, times, numbers and names vary."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
HOST = "demo-bare1"
SECTION = re.compile(r"^## (\d+)\. .*?\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
ADDED = re.compile(r"^Add this to [^\n]*\n\n```\n.*?^```$", re.MULTILINE | re.DOTALL)
"""What a reader writes, and no command shows."""
QUOTED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VARY = (
    (re.compile(r"\b\d{8}[T-]\d{6}\b"), "TIME"),
    # The second run of a second has a number.
    (re.compile(r"(?<=TIME-deploy)-\d+"), ""),
    (re.compile(r"\b[0-9a-f]{12}\b"), "HASH"),
    (re.compile(r"\b\d+(?:\.\d+)? s\b"), "SECONDS"),
    (re.compile(r"\S*/?runs/"), "runs/"),
    (re.compile(r"\b\d+ hosts?\b"), "HOSTS"),
    (re.compile(r"\b\d+ switched\b"), "SWITCHED"),
    (re.compile(r"\b10\.79\.\d+\.\d+\b"), "ADDRESS"),
    (re.compile(r"\brwl-\S+"), "BRIDGE"),
    # A machine with less than 61 GiB free has one more, about its disk.
    (re.compile(r"\b\d+ warnings?\b"), "WARNINGS"),
)


def blocks(section: int) -> list[str]:
    """Return the blocks of output in a section: those without a language. Raises KeyError for an unknown section."""
    text = {int(number): body for number, body in SECTION.findall(PAGE.read_text())}[section]
    return [block for language, block in QUOTED.findall(ADDED.sub("", text)) if not language]


def missing(section: int, output: str, host: str, block: int | None = None) -> list[str]:
    """Find lines of a section, or of one of its blocks, that a run's output lacks, or has in another order.

    host: the name in the output for the tutorial's own.
    """
    chosen = blocks(section) if block is None else [blocks(section)[block]]
    printed = list(_plain(output, host))
    return [row for text in chosen for row in _not_in_order(list(_plain(text, HOST)), printed)]


def _not_in_order(wanted: list[str], printed: list[str]) -> Iterator[str]:
    start = 0
    for row in wanted:
        if row in printed[start:]:
            start = printed.index(row, start) + 1
        else:
            yield row


def _plain(text: str, host: str) -> Iterator[str]:
    for row in text.splitlines():
        words = " ".join(row.replace(host, "HOST").replace("would ", "").split())
        for pattern, name in VARY:
            words = pattern.sub(name, words)
        if words and "───" not in words:
            yield words
