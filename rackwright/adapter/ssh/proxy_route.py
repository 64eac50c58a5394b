"""The way to a host's sshd: through a program, through jump hosts, or by a socket of a certain family."""

from __future__ import annotations

import os
import re
import shlex
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from paramiko import ProxyCommand, SSHException

from rackwright.settings.ssh.openssh import SshAnswer, SshQuestion
from rackwright.settings.ssh.tokens import tokens_of

FAMILIES = {"inet": socket.AF_INET, "inet6": socket.AF_INET6}
SHELL = "/bin/sh"
PLACE = re.compile(r"(?:\[([^]]+)\]|([^][:]+))(?::([0-9]+))?")
"""`name`, `name:port`, `[address]:port`; an address of IPv6 without brackets has no port."""


@dataclass(frozen=True)
class Hop:
    """A jump host as ProxyJump names it."""

    host: str
    user: str | None
    port: int | None

    def question(self, file: str | None) -> SshQuestion:
        """Return the question as ssh is given it. file: the SSH configuration of the host behind it."""
        return SshQuestion(self.host, file, self.user, self.port)


def chain_of(answer: SshAnswer, question: SshQuestion) -> list[Hop]:
    """Return the jump hosts; their names may hold tokens of the host behind them: %h, %n, %p, %r."""
    tokens = tokens_of(answer, question)
    return hops(re.sub("%.", lambda found: tokens.get(found[0], found[0]), answer.get("proxyjump")))


def hops(text: str) -> list[Hop]:
    """Return the jump hosts of a ProxyJump, in connection order. Raises SSHException for an invalid value."""
    return [_hop(hop.strip()) for hop in text.split(",") if hop.strip()]


def _hop(text: str) -> Hop:
    user, _, address = text.removeprefix("ssh://").rstrip("/").rpartition("@")
    if address.count(":") > 1 and not address.startswith("["):
        return Hop(address, user or None, None)
    found = PLACE.fullmatch(address)
    if not found:
        raise SSHException(f"ProxyJump {text}: it names no jump host")
    return Hop(found[1] or found[2], user or None, int(found[3]) if found[3] else None)


def program(answer: SshAnswer, question: SshQuestion, address: str, port: int, user: str) -> Any:
    """Start the ProxyCommand by the user's shell with its tokens filled in, as ssh starts it."""
    tokens = {"%%": "%", "%h": address, "%n": question.host, "%p": str(port), "%r": user}
    command = re.sub("%.", lambda found: tokens.get(found[0], found[0]), answer.get("proxycommand"))
    return ProxyCommand(shlex.join([os.environ.get("SHELL") or SHELL, "-c", f"exec {command}"]))


def bound_socket(answer: SshAnswer, address: str, port: int, timeout: float | None) -> socket.socket | None:
    """Connect as AddressFamily and BindAddress require; return None where neither is set. Raises OSError."""
    family, source = FAMILIES.get(answer.get("addressfamily"), socket.AF_UNSPEC), answer.get("bindaddress")
    if family == socket.AF_UNSPEC and not source:
        return None
    return _first(socket.getaddrinfo(address, port, family, socket.SOCK_STREAM), source, timeout)


def _first(found: Sequence[Any], source: str, timeout: float | None) -> socket.socket:
    """Connect to the first address that answers. Raises the last one's OSError."""
    error: OSError | None = None
    for family, kind, protocol, _, at in found:
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(timeout)
            if source:
                connection.bind((source, 0))
            connection.connect(at)
        except OSError as caught:
            connection.close()
            error = caught
        else:
            return connection
    raise error or OSError("it has no address")
