"""One command reads a host: each concern's lines as a section with its own exit status and error text.

Rules that this file carries (tried on real hosts): empty output never means "absent" unless the section
ended well, and contents that may hold any byte travel as base64. What begins and ends a section carries a nonce that
the host makes for this one reading and prints first: no name of a file or a process can know it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rackwright.errors import ReadingError

HEAD = "::rackwright-reading:: "
"""Begins the first line of a reading, before its nonce."""

PRELUDE = """\
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
have() { command -v "$1" >/dev/null 2>&1; }
show() {
  if [ ! -e "$1" ]; then printf 'none %s\\n' "$1"; return; fi
  printf 'file %s ' "$1"; base64 -w0 <"$1" || return 9; echo
}
exec 3>&1
read -r reading_nonce </proc/sys/kernel/random/uuid
printf '\\n%s\\n' "::rackwright-reading:: $reading_nonce"
"""


@dataclass(frozen=True)
class Section:
    """What one concern's lines printed, their exit status and their error text."""

    status: int
    output: str
    error: str


def script(sections: Mapping[str, str]) -> str:
    """Compose the reading: a POSIX sh script that runs each section in a subshell of its own.

    `have NAME` and `show PATH` are at hand in a section; `show` prints a file as base64, read by `files()`.
    """
    parts = [PRELUDE]
    for name, lines in sections.items():
        parts.append(f"printf '%s begin {name}\\n' \"$reading_nonce\"\n")
        parts.append(f"e=$( {{\n{lines.rstrip()}\n}} 2>&1 >&3 3>&- ); r=$?\n")
        parts.append('[ -z "$e" ] || e=$(printf %s "$e" | base64 -w0)\n')
        parts.append('printf \'\\n%s end %s %s\\n\' "$reading_nonce" "$r" "$e"\n')
    return "".join(parts)


def parse(lines: Iterable[str], expected: Iterable[str]) -> dict[str, Section]:
    """Split what the script printed into sections by name.

    Raises ReadingError when a section is missing or cut short: the host is then unknown, never "as if empty".
    """
    found: dict[str, Section] = {}
    rest = iter(lines)
    nonce = next((line.removeprefix(HEAD) for line in rest if line.startswith(HEAD)), "")
    if not nonce:
        raise ReadingError(f"the reading broke off before: {', '.join(expected) or 'its beginning'}", code="RW0506")
    name, body = "", list[str]()
    for line in rest:
        match line.split(" "):
            case [seen, "begin", begun] if seen == nonce:
                name, body = begun, []
            case [seen, "end", *words] if seen == nonce:
                found[name] = _section(words, body)
            case _:
                body.append(line)
    missing = [wanted for wanted in expected if wanted not in found]
    if missing:
        raise ReadingError(f"the reading broke off before: {', '.join(missing)}", code="RW0506")
    return found


def _section(words: list[str], body: list[str]) -> Section:
    if body and body[-1] == "":
        body.pop()
    try:
        return Section(int(words[0]), "\n".join(body), decode(words[1] if len(words) > 1 else ""))
    except (ValueError, IndexError) as error:
        raise ReadingError(f"a section of the reading has no end: {words!r}", code="RW0506") from error


def lines_of(output: str) -> list[str]:
    """The lines of a section that are not empty.

    Only a line feed ends one, as for the shell that printed it; Python's own splitlines() would also break a line at
    characters that a name may hold.
    """
    return [line for line in output.split("\n") if line]


def decode(text: str) -> str:
    """Text of a base64 word; bytes that are no UTF-8 become replacement characters."""
    try:
        return base64.b64decode(text, validate=True).decode(errors="replace")
    except (binascii.Error, ValueError) as error:
        raise ReadingError(f"unreadable base64 from the host: {error}", code="RW0506") from error


def files(output: str) -> dict[str, str | None]:
    """Contents by path of all lines that `show` printed; None where the file is absent."""
    found: dict[str, str | None] = {}
    for line in lines_of(output):
        words = line.split(" ")
        if words[0] == "file" and len(words) >= 2:
            found[words[1]] = decode(words[2] if len(words) > 2 else "")
        elif words[0] == "none" and len(words) == 2:
            found[words[1]] = None
    return found


def pairs(output: str) -> dict[str, str]:
    """`key=value` lines as a mapping; lines without `=` are left out."""
    return dict(line.split("=", 1) for line in lines_of(output) if "=" in line)
