"""known_hosts as OpenSSH reads it (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT), line by line: no line loses another. Pure."""

from __future__ import annotations

import binascii
import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

MARKERS = AUTHORITY, REVOKED = "@cert-authority", "@revoked"
KINDS = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa")
"""Kinds of host keys that the connection can ask for; a line with another kind proves nothing here."""
BYTES = 1 << 26
"""Of a file at most."""


@dataclass(frozen=True)
class Line:
    """One line about hosts."""

    file: str
    number: int
    marker: str
    names: str
    kind: str
    key: str
    """The key in base64."""
    trouble: str = ""
    """Why it is of no use."""

    @property
    def where(self) -> str:
        """File and line, as people name it."""
        return f"{self.file}:{self.number}"

    def is_about(self, host: str) -> bool:
        """Return True if it names the host: as written, by a pattern, or hashed."""
        if self.names.startswith("|"):
            return _is_hash_of(self.names, host)
        names = self.names.lower().split(",")
        if any(_fits(host, name[1:]) for name in names if name.startswith("!")):
            return False
        return any(_fits(host, name) for name in names)


@dataclass(frozen=True)
class Lines:
    """The lines of a file, so that those about one of many hosts are found at once."""

    by_name: Mapping[str, Sequence[Line]] = field(default_factory=dict)
    others: Sequence[Line] = ()
    """Lines with patterns or hashes."""

    def about(self, host: str) -> list[Line]:
        """Return the lines about a host, in their order."""
        found = [*self.by_name.get(host, ()), *(entry for entry in self.others if entry.is_about(host))]
        return sorted(found, key=lambda entry: entry.number)


class KeyVerdict(Enum):
    """The files' verdict on a key that a host has shown."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    CHANGED = "changed"
    REVOKED = "revoked"


@dataclass(frozen=True)
class HostNames:
    """The names of a host in known_hosts, and the files to look them up in."""

    entry: str
    """`name`, or `[name]:port`."""
    also: str = ""
    """The name without its port: keys are known by it too, as to ssh."""
    files: tuple[str, ...] = ()

    def about(self, name: str) -> list[Line]:
        """Return the lines of all files that name the host so."""
        return [entry for file in self.files for entry in lines_of(file).about(name.lower())] if name else []

    @property
    def usable(self) -> list[Line]:
        """The lines whose keys the host may show; those by its name without the port where there is no other."""
        return _plain(self.about(self.entry)) or _plain(self.about(self.also))

    @property
    def kinds(self) -> list[str]:
        """The kinds of the keys that are known, which the host is asked for first."""
        return list(dict.fromkeys(entry.kind for entry in self.usable))

    def judge(self, kind: str, key: str) -> tuple[KeyVerdict, str]:
        """Return what the files say of a key, and the line that says so, as `FILE:LINE`; empty without such a line.

        kind, key: as known_hosts has them.
        """
        every = [*self.about(self.entry), *self.about(self.also)]
        same = [entry for entry in every if _is_same(entry, kind, key)]
        for marker, verdict in ((REVOKED, KeyVerdict.REVOKED), ("", KeyVerdict.KNOWN)):
            # A revoked key counts in a broken line as well; ssh accepts a key by a whole one alone.
            if found := next((row for row in same if row.marker == marker and (marker or not row.trouble)), None):
                return verdict, found.where
        others = _plain(self.about(self.entry))
        return (KeyVerdict.CHANGED, others[0].where) if others else (KeyVerdict.UNKNOWN, "")

    def remarks(self) -> list[str]:
        """Return why lines about the host, and files, are of no use for it."""
        every = [*self.about(self.entry), *self.about(self.also)]
        authority = (
            "names a certificate authority, and host certificates are not checked here: add the host's own key "
            "(ssh-keyscan, compared), which its sshd has too"
        )
        found = [f"{entry.where} {authority}" for entry in every if entry.marker == AUTHORITY]
        found += [f"{entry.where} is of no use: {entry.trouble}" for entry in every if entry.trouble]
        return [*found, *(f"{file} {why}" for file in self.files if (why := unreadable(file)))]


def lines_of(file: str) -> Lines:
    """Return the lines of a file that are about hosts, those of no use included; none when it cannot be read."""
    path = Path(file).expanduser()
    try:
        found = path.stat()
    except OSError:
        return Lines()
    return _read(path, found.st_mtime_ns, found.st_size) if path.is_file() and found.st_size <= BYTES else Lines()


def unreadable(file: str) -> str:
    """Return why a file that is there cannot be read; empty when it can, or is missing."""
    path = Path(file).expanduser()
    try:
        if path == Path("/dev/null"):
            return "holds no keys: name a file, or leave UserKnownHostsFile out"
        if not path.is_file():
            return "is not a file" if path.exists() else ""
        if path.stat().st_size > BYTES:
            return f"is larger than {BYTES >> 20} MiB"
        with path.open("rb"):
            return ""
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def hashed(host: str, salt: bytes) -> str:
    """Return a host's name as `HashKnownHosts` has it."""
    digest = hmac.new(salt, host.encode(errors="surrogateescape"), hashlib.sha1).digest()
    return f"|1|{b64encode(salt).decode()}|{b64encode(digest).decode()}"


# -- lines


@cache
def _read(path: Path, changed: int, size: int) -> Lines:  # noqa: ARG001 - another time, another text
    try:
        text = path.read_bytes().decode(errors="surrogateescape")
    except OSError:
        return Lines()
    by_name, others = dict[str, list[Line]](), list[Line]()
    for entry in _lines(str(path), text):
        if any(mark in entry.names for mark in "*?!|"):
            others.append(entry)
            continue
        for name in dict.fromkeys(entry.names.lower().split(",")):
            by_name.setdefault(name, []).append(entry)
    return Lines(by_name, others)


def _lines(file: str, text: str) -> Iterator[Line]:
    for number, row in enumerate(text.split("\n"), 1):
        words = row.replace("\t", " ").split(" ")
        # Other blanks are part of a name to ssh, and nothing within a key: the end of a line with CR.
        words = [part for part in words if part]
        if not words or words[0].startswith("#"):
            continue
        marker = words.pop(0) if words[0].startswith("@") else ""
        names, kind, key = (*words, "", "", "")[:3]
        key = key.strip()
        yield Line(file, number, marker, names, kind, key, _trouble(marker, kind, key))


def _trouble(marker: str, kind: str, key: str) -> str:
    if marker and marker not in MARKERS:
        return f"{marker} is not a marker that ssh knows"
    if not key:
        return "it has no key"
    if kind.isdecimal():
        return "it has a key of SSH's first version"
    if _kind_within(key) != kind:
        return "its key is broken" if _kind_within(key) is None else f"its key is not of kind {kind}"
    return "" if marker or kind in KINDS else f"keys of kind {kind} are not used here: add another one of the host's"


def _kind_within(key: str) -> str | None:
    """Return the kind that a key itself says it is; None when it is broken."""
    if len(key) % 4:  # Python accepts one `=` too many
        return None
    try:
        blob = b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        return None
    length = int.from_bytes(blob[:4], "big")
    return blob[4 : 4 + length].decode(errors="replace") if len(blob) > 4 + length else None


def _plain(lines: Sequence[Line]) -> list[Line]:
    return [entry for entry in lines if not entry.marker and not entry.trouble]


def _is_same(entry: Line, kind: str, key: str) -> bool:
    return (entry.kind, entry.key.rstrip("=")) == (kind, key.rstrip("="))


def _fits(host: str, pattern: str) -> bool:
    if "*" not in pattern and "?" not in pattern:
        return host == pattern
    return fnmatchcase(host, pattern.replace("[", "[[]"))


def _is_hash_of(names: str, host: str) -> bool:
    try:
        _, version, salt, _ = names.split("|")
        return version == "1" and hmac.compare_digest(hashed(host, b64decode(salt)), names)
    except (binascii.Error, ValueError, TypeError):
        return False
