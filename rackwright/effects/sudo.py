"""Sudo passwords are refused: pyinfra would ask for one and pass it on where the host's process list shows it."""

from __future__ import annotations

from typing import Any

from pyinfra.connectors import util

from rackwright.errors import RackwrightError


class PasswordWantedError(RackwrightError):
    """Sudo on a host wants a password."""

    code = "RW0708"


def _refuse(prompt: str = "", stream: Any = None) -> str:  # noqa: ARG001 - called in getpass's place
    raise PasswordWantedError(
        "sudo asks for a password, and passwords are refused since they show in the host's process list; "
        "let the login use sudo without one, on the host, LOGIN being its name: "
        "echo 'LOGIN ALL=(ALL) NOPASSWD: ALL' | sudo tee /etc/sudoers.d/LOGIN"
    )


def refuse_passwords() -> None:
    """From now on nobody is asked for a sudo password: PasswordWantedError is raised instead."""
    util.getpass = _refuse
