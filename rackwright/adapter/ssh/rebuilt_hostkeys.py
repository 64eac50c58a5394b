"""A host's keys: those that it offers now, those that known_hosts has of it, and the change from one to the other."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko
from paramiko.hostkeys import HostKeyEntry
from pyinfra.api.exceptions import PyinfraError

from rackwright.adapter.ssh.client import SECONDS, SILENT, silent
from rackwright.messages import RackwrightError
from rackwright.one_writer import one_writer
from rackwright.settings.ssh.known_hosts import HostKeyPlace

KINDS = ("ssh-ed25519", "ecdsa-sha2-nistp256", "rsa-sha2-512")
"""Algorithms to ask for, each in a connection of its own: a server shows one key at a time."""


@dataclass(frozen=True)
class HostKey:
    """A public key of a host."""

    kind: str
    text: str
    """As known_hosts has it: base64."""
    fingerprint: str
    """`SHA256:...`, as `ssh-keygen -lf` prints it."""


def _of(key: paramiko.PKey) -> HostKey:
    return HostKey(key.get_name(), key.get_base64(), str(key.fingerprint))


# -- offered


def offered(name: str, target: HostKeyPlace, connect: Callable[[], Any]) -> list[HostKey]:
    """Return the keys that the host shows, none of them trusted. Raises RackwrightError when it shows none.

    connect: makes a connection to its sshd, through its jump hosts.
    """
    # It logs a key that a host lacks as a traceback.
    logging.getLogger("paramiko").setLevel(logging.CRITICAL)
    found: list[HostKey] = []
    for kind in KINDS:
        try:
            found.append(_shown(connect(), kind))
        except paramiko.SSHException:
            continue  # it has no key of this kind
        except (OSError, EOFError, PyinfraError) as error:
            raise RackwrightError(
                f"{name}: sshd at {target.address} port {target.port} does not answer: "
                f"{error or type(error).__name__}; nothing was changed; next: wait until it has booted",
                code="RW1318",
            ) from error
    if not found:
        raise RackwrightError(
            f"{name}: sshd at {target.address} port {target.port} shows no key; nothing was changed", code="RW1319"
        )
    return found


def first_offered(name: str, target: HostKeyPlace, connect: Callable[[], Any]) -> HostKey:
    """Return the best key that the host shows, not trusted. Raises RackwrightError, at once where it does not answer.

    connect: as for `offered`.
    """
    logging.getLogger("paramiko").setLevel(logging.CRITICAL)
    for kind in KINDS:
        try:
            return _shown(connect(), kind)
        except paramiko.ssh_exception.IncompatiblePeer:
            continue  # it has no key of this kind
        except (OSError, EOFError, PyinfraError, paramiko.SSHException) as error:
            why = silent(target.address, SECONDS) if str(error) == SILENT else _unanswered(target, error)
            raise RackwrightError(f"{name}: {why}", code="RW1318") from error
    raise RackwrightError(f"{name}: sshd at {target.address} port {target.port} shows no key", code="RW1319")


def _unanswered(target: HostKeyPlace, error: BaseException) -> str:
    why = getattr(error, "strerror", None) or error or type(error).__name__
    return f"sshd at {target.address} port {target.port} does not answer: {why}"


def _shown(connection: Any, kind: str) -> HostKey:
    transport = paramiko.Transport(connection)
    try:
        transport.get_security_options().key_types = (kind,)
        transport.start_client(timeout=SECONDS)
        return _of(transport.get_remote_server_key())
    finally:
        transport.close()


# -- known


def trusted(target: HostKeyPlace) -> list[HostKey]:
    """Return the keys that the files have of a host, hashed names included."""
    lines = [row for file in target.files for row in _text(_path(file)).split("\n") if _names(row, target.entry)]
    entries = [entry for row in lines if (entry := _parsed(row)) is not None]
    return [_of(entry.key) for entry in entries if entry.key is not None]


def _parsed(row: str) -> HostKeyEntry | None:
    try:
        return HostKeyEntry.from_line(row)
    except paramiko.hostkeys.InvalidHostKey:
        return None


def _text(path: Path) -> str:
    """Return a file's content, byte for byte. Raises RackwrightError when it cannot be read."""
    try:
        return path.read_bytes().decode(errors="surrogateescape") if path.is_file() else ""
    except OSError as error:
        raise RackwrightError(f"{path}: cannot be read: {error.strerror}; next: ls -l {path}", code="RW1320") from error


def _path(file: str) -> Path:
    return Path(file).expanduser().resolve()


def _names(row: str, entry: str) -> bool:
    """Return whether a line is about a host by its name. Patterns, authorities and revocations are the user's own."""
    words = row.split()
    if len(words) < 3 or words[0].startswith(("#", "@")):
        return False
    return any(_is(name, entry) for name in words[0].split(","))


def _is(name: str, entry: str) -> bool:
    if name.startswith("|1|"):
        try:
            return paramiko.HostKeys.hash_host(entry, name) == name
        except (ValueError, IndexError):
            return False
    return name == entry


def without(text: str, entry: str, when: str) -> str:
    """Return a known_hosts text with a host's lines as comments. Other hosts of the same line keep theirs."""
    found: list[str] = []
    for row in text.removesuffix("\n").split("\n") if text else ():
        if not _names(row, entry):
            found.append(row)
            continue
        names, remaining = row.split(None, 1)
        others = [name for name in names.split(",") if not _is(name, entry)]
        found += [f"# before the rebuild of {when}: {row}", *([f"{','.join(others)} {remaining}"] if others else [])]
    return "".join(f"{row}\n" for row in found)


def accept(target: HostKeyPlace, keys: Sequence[HostKey], when: str) -> Path:
    """Put a host's new keys in place of its old ones, in every file that has any; returns the file that has them now.

    when: word for the comments that keep the old lines. Raises RackwrightError when a file cannot be written.
    """
    lines = "".join(f"{target.entry} {key.kind} {key.text}\n" for key in keys)
    if not target.files:
        raise RackwrightError(f"{target.entry}: no file keeps its key (UserKnownHostsFile none)", code="RW1320")
    first, *others = dict.fromkeys(_path(file) for file in target.files)
    try:
        for path in others:
            if any(_names(row, target.entry) for row in _text(path).split("\n")):
                _rewrite(path, target.entry, when, "")
        _rewrite(first, target.entry, when, lines)
    except OSError as error:
        raise RackwrightError(
            f"{error.filename or first}: the new key cannot be written: {error}", code="RW1320"
        ) from error
    return first


def _rewrite(path: Path, entry: str, when: str, more: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with one_writer(path.parent):
        new = path.with_name(f"{path.name}.rackwright-new")
        new.touch(mode=0o600)
        new.write_bytes((without(_text(path), entry, when) + more).encode(errors="surrogateescape"))
        if path.exists():
            shutil.copystat(path, new)
            os.chown(new, path.stat().st_uid, path.stat().st_gid)
        new.replace(path)
