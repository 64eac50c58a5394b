"""The keys that endpoints' clients send: each in a file of root's, named by its digest, as the header curl sends.

A binding names the key by its digest, so a switch changes it and rolling back brings the old one with it; the file of
the old one goes at the commit.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rackwright.concerns.endpoint.binding import key_digest
from rackwright.paths import endpoint_dir, keys_dir
from rackwright.plan.change import Change, Owned, Shell, WriteFile
from rackwright.settings.secret import Secret

KEY_LINES = ("key ", "keys_salt ")
"""Prefix of the reading's lines about keys."""
_MODE = "600:root"


@dataclass(frozen=True)
class SeenKeys:
    """Key files on the host. Of what is in them, only a digest with the host's own salt leaves it."""

    salt: str = ""
    files: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """By endpoint and name: mode and owner, and the salted digest of its text."""


def read_keys(home: str) -> str:
    """List the key files below a folder of endpoints."""
    return f"""\
keys_salt=none
[ ! -r /etc/machine-id ] || read -r keys_salt </etc/machine-id
printf '%s\\n' "keys_salt $keys_salt"
for f in {home}/*/keys/*; do
  [ -f "$f" ] || continue
  own=${{f%/keys/*}}
  sum=$({{ printf %s "$keys_salt"; cat "$f"; }} | sha256sum)
  printf '%s\\n' "key ${{own##*/}} ${{f##*/}} $(stat -c %a:%U "$f") ${{sum%% *}}"
done"""


def parse_keys(lines: Iterable[str]) -> SeenKeys:
    """Return the reading's part about keys."""
    rows = [text.split(" ") for text in lines if text.startswith(KEY_LINES)]
    salt = next((row[1] for row in rows if row[0] == "keys_salt"), "")
    return SeenKeys(salt, {(row[1], row[2]): (row[3], row[4]) for row in rows if row[0] == "key"})


def key_changes(wanted: Mapping[str, Secret], reading: SeenKeys) -> list[Change]:
    """Write each key that is not there as it should be. Those that no binding names go at a commit."""
    found = []
    for name, key in wanted.items():
        stored = reading.files.get((name, key_digest(key)))
        if stored is None or stored[1] != _sum(reading.salt, key):
            found.append(_store(name, key, "it is not on the host" if stored is None else "its file was changed"))
        elif stored[0] != _MODE:
            found.append(_protect(name, key, stored[0]))
    return found


def header(key: Secret) -> Secret:
    """Return the line that a client sends."""
    return Secret(f"Authorization: Bearer {key.unmask()}\n")


def _path(name: str, key: Secret) -> str:
    return f"{keys_dir(name)}/{key_digest(key)}"


def _store(name: str, key: Secret, why: str) -> Change:
    folder = Shell(f"mkdir -p -m 0700 {keys_dir(name)}")
    step = WriteFile(_path(name, key), header(key), "0600")
    owned = Owned("directory", endpoint_dir(name))
    return Change(f"store the key of endpoint {name} for root only", why, (folder, step), owns=(owned,))


def _protect(name: str, key: Secret, mode: str) -> Change:
    path = shlex.quote(_path(name, key))
    step = Shell(f"chown root:root {path} && chmod 0600 {path}")
    return Change(f"make the key of endpoint {name} readable by root only", f"its mode and owner are {mode}", (step,))


def _sum(salt: str, key: Secret) -> str:
    return hashlib.sha256(f"{salt}{header(key).unmask()}".encode()).hexdigest()
