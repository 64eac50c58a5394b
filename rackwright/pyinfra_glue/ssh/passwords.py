"""Nobody is asked for a sudo password: pyinfra would put it into the host's process list."""

from __future__ import annotations

from typing import Any

from pyinfra.connectors import util

from rackwright.effects.login import PasswordWantedError
from rackwright.pyinfra_glue.patch import patch


def refuse_passwords() -> None:
    """From now on PasswordWantedError is raised where pyinfra would ask for one."""
    patch(util, "getpass", _refuse)


def _refuse(prompt: str = "", stream: Any = None) -> str:  # noqa: ARG001 - called in getpass's place
    raise PasswordWantedError
