"""An SSH configuration read without ssh, on a machine that has none: what is not certain is refused with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from rackwright.messages import SettingsError

LINE = re.compile(r"(\w+)(?:\s*=\s*|\s+)(\S.*)")
SEVERAL = ("identityfile", "certificatefile")
"""Keywords of which every value counts; of the others the first one does."""


def read_plainly(host: str, file: Path) -> dict[str, tuple[str, ...]]:
    """Return what a file says of a host, by keyword in lower case.

    Raises SettingsError, with file and line, for what only ssh itself can tell: Match, Include, tokens, quotes.
    """
    found: dict[str, tuple[str, ...]] = {}
    for keyword, value in _of_host(host, file):
        if keyword not in found or keyword in SEVERAL:
            found[keyword] = (*found.get(keyword, ()), value)
    return {**found, "hostname": (found["hostname"][0].replace("%h", host),)} if "hostname" in found else found


def _of_host(host: str, file: Path) -> Iterator[tuple[str, str]]:
    applies = True
    for number, keyword, value in _lines(file):
        if keyword == "host":
            applies = _matches(host, value.split())
        elif keyword == "match":
            if value.lower() != "all":
                raise _unknown(file, number, f"Match {value}")
            applies = True
        elif keyword == "include":
            raise _unknown(file, number, f"Include {value}")
        elif applies:
            yield keyword, value


def _lines(file: Path) -> Iterator[tuple[int, str, str]]:
    if not file.exists():
        return
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: cannot be read: {error}; next: ls -l {file}", code="RW0125") from None
    for number, row in enumerate(text.split("\n"), 1):
        stripped = row.strip()
        if not stripped or stripped.startswith("#"):
            continue
        found = LINE.fullmatch(stripped)
        if not found or re.search(r"[\"'#]", stripped) or (re.search("%(?![hpr])", stripped)):
            raise _unknown(file, number, stripped)
        yield number, found[1].lower(), found[2]


def _matches(host: str, patterns: Sequence[str]) -> bool:
    if any(_fits(host, pattern[1:]) for pattern in patterns if pattern.startswith("!")):
        return False
    return any(_fits(host, pattern) for pattern in patterns)


def _fits(host: str, pattern: str) -> bool:
    return fnmatchcase(host, pattern.replace("[", "[[]"))


def _unknown(file: Path, number: int, text: str) -> SettingsError:
    return SettingsError(
        f"{file}:{number}: only ssh itself knows what `{text}` means, and this machine has no ssh; next: install "
        "OpenSSH's client (apt-get install openssh-client)",
        code="RW0125",
    )
