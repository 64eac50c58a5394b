"""A file that a host's kernel does not let even root write, recognised in what a command printed. Pure.

The programs of a host speak the C locale's English (plan/reading.py), and name the file in their own ways.
"""

from __future__ import annotations

import re

IMMUTABLE, READ_ONLY, QUOTA, FULL = "RW0741", "RW0771", "RW0781", "RW0729"
_KINDS = {
    "Operation not permitted": IMMUTABLE,
    "Read-only file system": READ_ONLY,
    "Disk quota exceeded": QUOTA,
    "No space left on device": FULL,
}
_TOLD = {
    IMMUTABLE: "{path} cannot be written, not even by root: it or its folder is immutable or append-only; next, on the "
    "host: lsattr -d {path} {folder}; chattr -i {path}",
    READ_ONLY: "{path} cannot be written: its file system is mounted read-only; next, on the host: findmnt --target "
    "{folder}; journalctl -k --grep 'remount|I/O error'",
    QUOTA: "{path} cannot be written: a disk quota is used up; next, on the host: repquota -a",
    FULL: "{path} cannot be written: no space is left on its file system; next, on the host: df -h {folder}; "
    "df -i {folder}",
}
AGAIN = "; then the same command again"
_LINE = re.compile(rf"^(?P<what>.*): (?P<why>{'|'.join(_KINDS)})$")
_PATHS = re.compile(r"'(/[^']+)'|cannot create (/\S+?)(?=:|$)|(?:^|: )(/\S+)$")


def unwritable(lines: list[str], path: str = "") -> tuple[str, str] | None:
    """Return the code and the sentence for a refused write, or None where the lines tell of something else.

    path: the file that was to be written, where the command is known; the lines may name a folder above it.
    """
    for text in reversed(lines):
        if found := _LINE.match(text.strip()):
            named = [next(filter(None, one)) for one in _PATHS.findall(found["what"])]
            refused = (named[-1] if named else path).removesuffix(".new")
            if refused:
                code = _KINDS[found["why"]]
                folder = refused.rpartition("/")[0] or "/"
                return code, _TOLD[code].format(path=refused, folder=folder) + AGAIN
    return None
