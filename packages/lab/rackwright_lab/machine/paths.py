"""Where a lab keeps its things, and what they are called: every name carries the lab's id."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from rackwright_lab.machine.shell import LabError

STATE_ROOT = Path("/var/lib/rackwright-lab")
# An interface name has 15 characters at most, and the bridge's is "rwl-" and the id.
ID_FORM = re.compile(r"[a-z][a-z0-9-]{0,9}[a-z0-9]|[a-z]")


def cache_root() -> Path:
    """Return the folder of what outlives labs: base systems, images, encodings (RACKWRIGHT_LAB_CACHE moves it)."""
    return Path(os.environ.get("RACKWRIGHT_LAB_CACHE", "/var/cache/rackwright-lab"))


def default_id() -> str:
    """Return the lab that a command without an id means: RACKWRIGHT_LAB_ID, or "demo"."""
    return os.environ.get("RACKWRIGHT_LAB_ID") or "demo"


@dataclass(frozen=True)
class Paths:
    """The names of one lab."""

    id: str

    def __post_init__(self) -> None:
        if not ID_FORM.fullmatch(self.id):
            raise LabError(f"{self.id!r} is not a lab id: use up to 11 of a-z, 0-9 and -, beginning with a letter")

    @property
    def root(self) -> Path:
        """The lab's state folder."""
        return STATE_ROOT / self.id

    @property
    def record(self) -> Path:
        """The lab's record, while it is up."""
        return self.root / "lab.json"

    @property
    def hosts(self) -> Path:
        """The folder with a folder of each host."""
        return self.root / "hosts"

    @property
    def pki(self) -> Path:
        """The folder of the lab's certificates."""
        return self.root / "pki"

    @property
    def secrets(self) -> Path:
        """The folder of the secrets that the lab made."""
        return self.root / "secrets"

    @property
    def web(self) -> Path:
        """The state folder of the web stand-ins: static trees, faults, the log of requests."""
        return self.root / "web"

    @property
    def known_hosts(self) -> Path:
        """The known_hosts file with the keys of all hosts."""
        return self.root / "known_hosts"

    @property
    def user_key(self) -> Path:
        """The private key that logs in to the hosts."""
        return self.root / "id_ed25519"

    @property
    def bridge(self) -> str:
        """The name of the lab's bridge on this machine."""
        return f"rwl-{self.id}"

    @property
    def tag(self) -> str:
        """The comment on every firewall rule of this lab, and the name of its control groups."""
        return f"rackwright-lab-{self.id}"
