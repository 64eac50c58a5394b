"""Endpoint values that differ from host to host: a small file beside `current`, read at each start (DECISIONS 40).

A release is the same on every host. Its unit names variables such as `${GPUS}`, and this file gives their values.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache

from rackwright.paths import endpoint_dir
from rackwright.plan.reading import whole_number
from rackwright.settings.secret import Secret

HASH = "BINDING"
"""The variable with the hash over all the others: the container carries it as a label."""
KEY = "KEY"
"""The variable with the digest of the endpoint's key."""
_ROUNDS = 50_000
"""A binding is not secret, so a made-up key must not be guessable from its digest."""


@dataclass(frozen=True)
class Binding:
    """One endpoint's own values on one host."""

    gpus: tuple[str, ...]
    """UUIDs of its GPUs; indices move with the PCI order, UUIDs do not."""
    key: str = ""
    """Digest of the key that its clients send: the name of the key's file. Empty: they need none."""
    rank: int = 0
    """Of this host among those that serve the endpoint with it."""
    addresses: tuple[str, ...] = ()
    """Addresses by which they reach each other, in the order of their ranks; none for an endpoint of one host."""
    headless: str = ""
    """The word by which the server of a member that is not the head answers no client."""

    @property
    def values(self) -> str:
        """The lines that the hash is over."""
        keyed = f"{KEY}={self.key}\n" if self.key else ""
        return f"GPUS={','.join(self.gpus)}\n{keyed}{self._place if self.addresses else ''}"

    @property
    def _place(self) -> str:
        # Written without braces in the unit, an empty argument is omitted.
        return (
            f"RANK={self.rank}\nHEAD={self.addresses[0]}\nADDRESS={self.addresses[self.rank]}\n"
            f"MEMBERS={','.join(self.addresses)}\nHEADLESS={self.headless}\n"
        )

    @property
    def hash(self) -> str:
        """First 12 hexadecimal digits of the SHA-256 over the values."""
        return hashlib.sha256(self.values.encode()).hexdigest()[:12]

    @property
    def text(self) -> str:
        """The file, as systemd's EnvironmentFile= reads it."""
        return f"{self.values}{HASH}={self.hash}\n"


@cache
def key_digest(key: Secret) -> str:
    """Return a binding's entry for an endpoint's key: 12 hexadecimal digits, the same on every host."""
    return hashlib.pbkdf2_hmac("sha256", key.unmask().encode(), b"rackwright endpoint key", _ROUNDS).hex()[:12]


def binding_path(endpoint: str) -> str:
    """Path of an endpoint's binding on the host."""
    return f"{endpoint_dir(endpoint)}/binding"


def parse_binding(text: str) -> Binding | None:
    """Return the binding in a file; None for one that was changed by hand."""
    values = dict(row.split("=", 1) for row in text.splitlines() if "=" in row)
    gpus, addresses = (tuple(filter(None, values.get(key, "").split(","))) for key in ("GPUS", "MEMBERS"))
    rank = whole_number(values.get("RANK", "0")) or 0
    if rank >= max(1, len(addresses)):
        return None
    found = Binding(gpus, values.get(KEY, ""), rank, addresses, values.get("HEADLESS", ""))
    return found if found.text == text else None
