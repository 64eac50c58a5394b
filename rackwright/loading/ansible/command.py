"""Ansible's own commands, called as commands (their licence is GPL, ours is not). They run in the site's folder."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from rackwright.loading.files import refuse_no_file
from rackwright.messages import SettingsError

CONFIG = "ansible.cfg"


def command(name: str) -> str:
    """Return the path of an Ansible command: the one that was installed with Rackwright first, then PATH's.

    Raises SettingsError with what to install when the command is missing.
    """
    ours = (folder / name for folder in _folders() if (folder / name).is_file())
    found = next(map(str, ours), None) or shutil.which(name)
    if not found:
        raise SettingsError(
            f"the command {name} is not installed; next: {sys.executable} -m pip install ansible-core", code="RW0201"
        )
    return found


def _folders() -> list[Path]:
    """Return where pip puts commands: beside this Python, or with `--user`."""
    return [Path(sys.executable).parent, Path(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")))]


def environment(site: Path) -> dict[str, str]:
    """Return the environment for Ansible's commands: the site's ansible.cfg counts, and no log is written.

    Raises SettingsError where that is a pipe or a device: Ansible would wait at it for good.
    """
    refuse_no_file(site / CONFIG)
    variables = {**os.environ, "ANSIBLE_LOG_PATH": os.devnull, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0"}
    if (site / CONFIG).is_file():
        variables.setdefault("ANSIBLE_CONFIG", str(site / CONFIG))
    return variables


def first_error(text: str) -> str:
    """Return the first error line of an Ansible command's error output."""
    for row in text.splitlines():
        for mark in ("[ERROR]: ", "ERROR! "):
            if row.startswith(mark):
                return row.removeprefix(mark).strip()
    return text.strip().splitlines()[-1] if text.strip() else "it printed no reason"
