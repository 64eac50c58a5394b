"""One command reads a host: each concern's lines as a section with its own exit status and error text.

Rules of this file (tested on real hosts): empty output never means "absent" unless the section
ended well, and contents that may hold any byte travel as base64. The start and end of a section carry a nonce that the
host makes for this one reading and prints first: no name of a file or a process can contain it.

A process costs a host about a millisecond, and a reading looks at some thirty files: their contents travel in one
archive behind the sections, and `parse` inserts each where its section refers to it.
"""

from __future__ import annotations

import base64
import binascii
import io
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rackwright.messages import ReadingError

HEAD = "::rackwright-reading:: "
"""Begins the first line of a reading, before its nonce."""

PRELUDE = """\
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
have() { command -v "$1" >/dev/null 2>&1; }
carry() {
  [ -f "$2" ] && [ -r "$2" ] || {
    printf '%s\\n' "$2 is not a file that can be read; next, on it: ls -ld $2; move it away" >&2; exit 9
  }
  printf '%s %s:%s\\n' "$1" "$reading_nonce" "$2"; printf '%s\\0' "$2" >&4
}
show() {
  if [ -e "$1" ]; then carry "file $1" "$1"; else printf 'none %s\\n' "$1"; fi
}
quote() { printf '%s text %s\\n%s\\n%s end\\n' "$reading_nonce" "$1" "$2" "$reading_nonce"; }
exec 3>&1
read -r reading_nonce </proc/sys/kernel/random/uuid
printf '\\n%s\\n' "::rackwright-reading:: $reading_nonce"
"""
ARCHIVE = """\
} 4>&1 >&3 | tar --create --file=- --null --files-from=- --absolute-names --dereference --hard-dereference \
  --no-recursion --ignore-failed-read --format=gnu --blocking-factor=1 2>/dev/null | base64 -w0 )
printf '%s files %s\\n' "$reading_nonce" "$reading_files"
"""


@dataclass(frozen=True)
class Section:
    """Output of one concern's lines, their exit status and their error text."""

    status: int
    output: str
    error: str


def script(sections: Mapping[str, str], shared: str = "") -> str:
    """Compose the reading: a POSIX sh script that runs each section in its own subshell.

    shared: lines that run before the sections and in no subshell, so that each of them has their variables.
    Available in a section: `have NAME`; `show PATH`, a file, or its absence, read by `files()`; `carry WORDS PATH`,
    the words and the file's content as base64; `quote WORDS TEXT`, the same for a given text.
    """
    parts = [PRELUDE, shared.rstrip("\n") + "\n" if shared else "", "reading_files=$( {\n"]
    for name, lines in sections.items():
        parts.append(f"printf '%s begin {name}\\n' \"$reading_nonce\"\n")
        parts.append(f"e=$( {{\n{lines.rstrip()}\n}} 2>&1 >&3 3>&- ); r=$?\n")
        parts.append('[ -z "$e" ] || e=$(printf %s "$e" | base64 -w0)\n')
        parts.append('printf \'\\n%s end %s %s\\n\' "$reading_nonce" "$r" "$e"\n')
    return "".join([*parts, ARCHIVE])


def parse(lines: Iterable[str], expected: Iterable[str]) -> dict[str, Section]:
    """Split the script's output into sections by name.

    Raises ReadingError when a section is missing or cut short: the host is then unknown, never "as if empty".
    """
    remaining = iter(lines)
    nonce = next((row.removeprefix(HEAD) for row in remaining if row.startswith(HEAD)), "")
    if not nonce:
        raise ReadingError(f"the reading broke off before: {', '.join(expected) or 'its beginning'}", code="RW0506")
    bodies, packed = _bodies(remaining, nonce)
    missing = [wanted for wanted in expected if wanted not in bodies]
    if missing or packed is None:
        raise ReadingError(f"the reading broke off before: {', '.join(missing) or 'its end'}", code="RW0506")
    contents = _unpacked(packed)
    return {name: _section(words, body, nonce, contents) for name, (words, body) in bodies.items()}


def _bodies(lines: Iterator[str], nonce: str) -> tuple[dict[str, tuple[list[str], list[str]]], str | None]:
    """Return each section's end marker and lines, and the archive of all files; None when it is missing."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    name, body = "", list[str]()
    for row in lines:
        match row.split(" "):
            case [mark, "begin", begun] if mark == nonce:
                name, body = begun, []
            case [mark, "text", *words] if mark == nonce:
                body.append(" ".join([*words, _quoted(lines, nonce)]))
            case [mark, "end", *words] if mark == nonce:
                found[name] = (words, body)
            case [mark, "files", packed] if mark == nonce:
                return found, packed
            case _:
                body.append(row)
    return found, None


def _quoted(lines: Iterator[str], nonce: str) -> str:
    """Return a text that `quote` printed, as base64."""
    text = "\n".join(iter(lambda: next(lines, f"{nonce} end"), f"{nonce} end"))
    return base64.b64encode(text.encode()).decode()


def _unpacked(packed: str) -> dict[str, str]:
    """Return the contents, as base64, of the files that the host sent in the archive."""
    try:
        with tarfile.open(fileobj=io.BytesIO(base64.b64decode(packed, validate=True)), mode="r:") as archive:
            found = {member.name: archive.extractfile(member) for member in archive if member.isreg()}
            return {name: base64.b64encode(file.read()).decode() for name, file in found.items() if file}
    except (tarfile.TarError, binascii.Error, ValueError, EOFError) as error:
        raise ReadingError(f"unreadable files from the host: {error}", code="RW0506") from error


def _section(words: list[str], body: list[str], nonce: str, contents: Mapping[str, str]) -> Section:
    if body and body[-1] == "":
        body.pop()
    output = "\n".join(_with_content(row, nonce, contents) for row in body)
    try:
        return Section(int(words[0]), output, decode(words[1] if len(words) > 1 else ""))
    except (ValueError, IndexError) as error:
        raise ReadingError(f"a section of the reading has no end: {words!r}", code="RW0506") from error


def _with_content(row: str, nonce: str, contents: Mapping[str, str]) -> str:
    """Return a line with the content of the file in it, if any."""
    words, named, path = row.partition(f" {nonce}:")
    if named and path not in contents:
        raise ReadingError(f"{path} could not be read", code="RW0506")
    return f"{words} {contents[path]}" if named else row


def lines_of(output: str) -> list[str]:
    """Return the lines of a section that are not empty.

    Only a line feed ends one, as for the shell that printed it; Python's own splitlines() would also break a line at
    characters that a name may hold.
    """
    return [row for row in output.split("\n") if row]


def decode(text: str) -> str:
    """Decode base64 text; bytes that are not UTF-8 become replacement characters."""
    try:
        return base64.b64decode(text, validate=True).decode(errors="replace")
    except (binascii.Error, ValueError) as error:
        raise ReadingError(f"unreadable base64 from the host: {error}", code="RW0506") from error


def files(output: str) -> dict[str, str | None]:
    """Return contents by path of all lines that `show` printed; None where the file is absent."""
    found: dict[str, str | None] = {}
    for row in lines_of(output):
        words = row.split(" ")
        if words[0] == "file" and len(words) >= 2:
            found[words[1]] = decode(words[2] if len(words) > 2 else "")
        elif words[0] == "none" and len(words) == 2:
            found[words[1]] = None
    return found


def pairs(output: str) -> dict[str, str]:
    """Return `key=value` lines as a mapping; lines without `=` are left out."""
    return dict(row.split("=", 1) for row in lines_of(output) if "=" in row)


def whole_number(text: object) -> int | None:
    """Parse a whole number from a host; None for all else, and for an implausibly large one."""
    digits = str(text)
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None
