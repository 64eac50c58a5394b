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
    return [_hop(word.strip()) for word in text.split(",") if word.strip()]


def _hop(word: str) -> Hop:
    user, _, place = word.removeprefix("ssh://").rstrip("/").rpartition("@")
    if place.count(":") > 1 and not place.startswith("["):
        return Hop(place, user or None, None)
    found = PLACE.fullmatch(place)
    if not found:
        raise SSHException(f"ProxyJump {word}: it names no jump host")
    return Hop(found[1] or found[2], user or None, int(found[3]) if found[3] else None)


def program(said: SshAnswer, question: SshQuestion, address: str, port: int, user: str) -> Any:
    """Start the ProxyCommand by the user's shell with its tokens filled in, as ssh starts it."""
    tokens = {"%%": "%", "%h": address, "%n": question.host, "%p": str(port), "%r": user}
    command = re.sub("%.", lambda found: tokens.get(found[0], found[0]), said.get("proxycommand"))
    return ProxyCommand(shlex.join([os.environ.get("SHELL") or SHELL, "-c", f"exec {command}"]))


def bound_socket(said: SshAnswer, address: str, port: int, timeout: float | None) -> socket.socket | None:
    """Connect as AddressFamily and BindAddress require; return None where neither is set. Raises OSError."""
    family, source = FAMILIES.get(said.get("addressfamily"), socket.AF_UNSPEC), said.get("bindaddress")
    if family == socket.AF_UNSPEC and not source:
        return None
    return _first(socket.getaddrinfo(address, port, family, socket.SOCK_STREAM), source, timeout)


def _first(found: Sequence[Any], source: str, timeout: float | None) -> socket.socket:
    """Connect to the first address that answers. Raises the last one's OSError."""
    error: OSError | None = None
    for family, kind, protocol, _, at in found:
        line = socket.socket(family, kind, protocol)
        try:
            line.settimeout(timeout)
            if source:
                line.bind((source, 0))
            line.connect(at)
        except OSError as caught:
            line.close()
            error = caught
        else:
            return line
    raise error or OSError("it has no address")
