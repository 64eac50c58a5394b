"""A host as it is typed, `[USER@]ADDRESS[:PORT]`: its name and its connection in the inventory. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from rackwright.messages import RackwrightError, printable
from rackwright.settings.connection import HOSTNAME

TYPED = re.compile(
    r"(?:(?P<user>[^@\s]+)@)?(?P<address>\[[^\]\s]+\]|[^@\s:]+|[0-9A-Fa-f:.]+)(?::(?P<port>[0-9]{1,5}))?"
)
ADDRESS = re.compile(HOSTNAME)
USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+$-]*")
"""Nothing that ssh would take for an option."""
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class TypedHost:
    """A host that was typed."""

    address: str
    user: str = ""
    port: int = 0

    @property
    def name(self) -> str:
        """Its name in the inventory: the address, of IPv6 with dashes."""
        return NOT_IN_NAMES.sub("-", self.address).strip("-")

    @property
    def typed(self) -> str:
        """Return it as it is typed."""
        address = f"[{self.address}]" if ":" in self.address and self.port else self.address
        return f"{f'{self.user}@' if self.user else ''}{address}{f':{self.port}' if self.port else ''}"

    @property
    def data(self) -> dict[str, Any]:
        """Return its connection data, as the inventory has them."""
        found = {"ssh_hostname": self.address if self.name != self.address else "", "ssh_port": self.port}
        return {key: value for key, value in {**found, "ssh_user": self.user}.items() if value}


def typed_host(text: str) -> TypedHost:
    """Return what was typed. Raises RackwrightError for what is not a host: an option, a command, a URL."""
    match = TYPED.fullmatch(text)
    address = match["address"].strip("[]") if match else ""
    port = int(match["port"] or 0) if match else 0
    user = (match["user"] or "") if match else ""
    if not ADDRESS.fullmatch(address) or (user and not USER.fullmatch(user)) or port > 65535:
        words = f"{printable(text)!r} is not a host; next: [USER@]ADDRESS[:PORT], as in ops@10.0.0.7"
        raise RackwrightError(words, code="RW1082")
    return TypedHost(address, user, port)
