"""Never ask for a sudo password: pyinfra would put it into the host's process list."""

from __future__ import annotations

from typing import Any

from pyinfra.connectors import util

from rackwright.adapter.patch import patch
from rackwright.messages import RackwrightError

PASSWORD = (
    "sudo asks for a password, and passwords are refused since they show in the host's process list; "
    "let the login use sudo without one; next, on the host, LOGIN being its name: "
    "echo 'LOGIN ALL=(ALL) NOPASSWD: ALL' | sudo tee /etc/sudoers.d/LOGIN"
)


def refuse_passwords() -> None:
    """Raise PasswordWantedError from now on where pyinfra would ask for a password."""
    patch(util, "getpass", _refuse)


def _refuse(prompt: str = "", stream: Any = None) -> str:  # noqa: ARG001 - called in getpass's place
    raise PasswordWantedError


class PasswordWantedError(RackwrightError):
    """Sudo on a host wants a password, which is never given."""

    code = "RW0708"

    def __init__(self) -> None:
        super().__init__(PASSWORD)
