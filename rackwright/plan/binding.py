"""What of an endpoint differs from host to host: a small file beside `current`, read at each start (DECISIONS 40).

A release is the same on every host. Its unit names variables such as `${GPUS}`, and this file gives their values.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from rackwright.paths import endpoint_dir

HASH = "BINDING"
"""The variable with the hash over all the others: the container carries it as a label."""


@dataclass(frozen=True)
class Binding:
    """One endpoint's own values on one host."""

    gpus: tuple[str, ...]
    """UUIDs of its GPUs; indices move with the PCI order, UUIDs do not."""

    @property
    def values(self) -> str:
        """The lines that the hash is over."""
        return f"GPUS={','.join(self.gpus)}\n"

    @property
    def hash(self) -> str:
        """First 12 hexadecimal digits of the SHA-256 over the values."""
        return hashlib.sha256(self.values.encode()).hexdigest()[:12]

    @property
    def text(self) -> str:
        """The file, as systemd's EnvironmentFile= reads it."""
        return f"{self.values}{HASH}={self.hash}\n"


def binding_path(endpoint: str) -> str:
    """Where an endpoint's binding lies on the host."""
    return f"{endpoint_dir(endpoint)}/binding"


def parse_binding(text: str) -> Binding | None:
    """The binding that a file gives; None for one that was changed by hand."""
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    found = Binding(tuple(filter(None, values.get("GPUS", "").split(","))))
    return found if found.text == text else None
