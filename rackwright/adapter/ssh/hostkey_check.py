"""A host's key is judged by known_hosts as OpenSSH reads it, in place of paramiko's own reader."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paramiko import BadHostKeyException, MissingHostKeyPolicy, PKey, SSHException
from pyinfra import logger

from rackwright.adapter.ssh.transport import BoundedTransport
from rackwright.settings.ssh.known_hosts import HostKeyPlace
from rackwright.settings.ssh.known_keys import KeyVerdict, hashed

RSA = ("rsa-sha2-512", "rsa-sha2-256", "ssh-rsa")
"""Key types to ask a host for, of which an `ssh-rsa` key is known: the newest signature first."""


@dataclass(frozen=True)
class Trust(MissingHostKeyPolicy):
    """A judge of the keys that a host shows. paramiko, which knows no key, asks it for each."""

    target: HostKeyPlace
    accepts_new: bool
    is_hashed: bool = False
    """A new name is written hashed, as `HashKnownHosts` asks for."""

    def missing_host_key(self, client: Any, hostname: str, key: PKey) -> None:  # noqa: ARG002 - paramiko's own names
        """Raise SSHException for a key that is not known, is another one, or is revoked."""
        verdict, where = self.target.names.judge(key.get_name(), key.get_base64())
        entry = self.target.entry
        if verdict is KeyVerdict.REVOKED:
            raise SSHException(f"the host key of {entry} is revoked by {where}; next: give the host another key")
        if verdict is KeyVerdict.CHANGED:
            raise BadHostKeyException(self.target.address, key, key)
        if verdict is KeyVerdict.UNKNOWN and not self.accepts_new:
            more = "".join(f"; {text}" for text in self.target.names.remarks())
            raise SSHException(f"StrictPolicy: No host key for {entry} found in known_hosts{more}")
        if verdict is KeyVerdict.UNKNOWN:
            self._add(key)

    def _add(self, key: PKey) -> None:
        """Append the key to the first file; one that ends within a line gets its end first."""
        if not self.target.files:
            return
        path = Path(self.target.files[0]).expanduser()
        name = hashed(self.target.entry, os.urandom(20)) if self.is_hashed else self.target.entry
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with path.open("ab+") as file:
                within = path.is_file() and file.tell() and _last_byte(file) != b"\n"
                file.write(f"{chr(10) if within else ''}{name} {key.get_name()} {key.get_base64()}\n".encode())
        except OSError as error:
            raise SSHException(f"the new host key of {self.target.entry} cannot be written: {error}") from error
        logger.warning("Added host key for %s to %s", self.target.entry, path)

    def transport(self, *args: Any, **arguments: Any) -> BoundedTransport:
        """Make a transport that asks the host first for keys of the kinds that are known."""
        made = BoundedTransport(*args, **arguments)
        options = made.get_security_options()
        options.key_types = _ordered(options.key_types, self.target.names.kinds)
        return made


def _last_byte(file: Any) -> bytes:
    file.seek(-1, os.SEEK_END)
    last: bytes = file.read(1)
    return last


def _ordered(types: Sequence[str], kinds: Sequence[str]) -> tuple[str, ...]:
    wanted = [name for kind in kinds for name in (RSA if kind == "ssh-rsa" else (kind,))]
    return tuple(dict.fromkeys([*(name for name in wanted if name in types), *types]))
