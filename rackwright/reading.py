"""One command reads a host: each concern's lines as a section with its own exit status and error text.

Rules that this file carries (tried on real hosts): empty output never means "absent" unless the section
ended well, and contents that may hold any byte travel as base64.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rackwright.errors import ReadingError

MARK = "::rackwright-section::"

PRELUDE = """\
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
have() { command -v "$1" >/dev/null 2>&1; }
show() { if [ -e "$1" ]; then printf 'file %s ' "$1"; base64 -w0 <"$1" || return 9; echo; else echo "none $1"; fi; }
exec 3>&1
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
        parts.append(f"echo '{MARK} {name}'\n")
        parts.append(f"e=$( {{\n{lines.rstrip()}\n}} 2>&1 >&3 3>&- ); r=$?\n")
        parts.append('[ -z "$e" ] || e=$(printf %s "$e" | base64 -w0)\n')
        parts.append(f"printf '\\n%s end %s %s\\n' '{MARK}' \"$r\" \"$e\"\n")
    return "".join(parts)


def parse(lines: Iterable[str], expected: Iterable[str]) -> dict[str, Section]:
    """Split what the script printed into sections by name.

    Raises ReadingError when a section is missing or cut short: the host is then unknown, never "as if empty".
    """
    found: dict[str, Section] = {}
    name, body = "", list[str]()
    for line in lines:
        if not line.startswith(MARK):
            body.append(line)
        elif line.startswith(f"{MARK} end "):
            found[name] = _section(line, body)
        else:
            name, body = line.removeprefix(f"{MARK} "), []
    missing = [wanted for wanted in expected if wanted not in found]
    if missing:
        raise ReadingError(f"the reading broke off before: {', '.join(missing)}")
    return found


def _section(end: str, body: list[str]) -> Section:
    words = end.split(" ")
    if body and body[-1] == "":
        body.pop()
    return Section(int(words[2]), "\n".join(body), decode(words[3] if len(words) > 3 else ""))


def decode(text: str) -> str:
    """Text of a base64 word; bytes that are no UTF-8 become replacement characters."""
    try:
        return base64.b64decode(text, validate=True).decode(errors="replace")
    except (binascii.Error, ValueError) as error:
        raise ReadingError(f"unreadable base64 from the host: {error}") from error


def files(output: str) -> dict[str, str | None]:
    """Contents by path of all lines that `show` printed; None where the file is absent."""
    found: dict[str, str | None] = {}
    for line in output.splitlines():
        words = line.split(" ")
        if words[0] == "file" and len(words) >= 2:
            found[words[1]] = decode(words[2] if len(words) > 2 else "")
        elif words[0] == "none" and len(words) == 2:
            found[words[1]] = None
    return found


def pairs(output: str) -> dict[str, str]:
    """`key=value` lines as a mapping; lines without `=` are left out."""
    return dict(line.split("=", 1) for line in output.splitlines() if "=" in line)
