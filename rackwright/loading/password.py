"""A typed vault password, handed to ansible-vault without a file, an argument or the environment."""

from __future__ import annotations

import atexit
import configparser
import os
import shutil
import stat
import tempfile
from pathlib import Path

from rackwright.adapter.concurrency import spawn

VARIABLE = "ANSIBLE_VAULT_PASSWORD_FILE"


def hand_out(password: str) -> Path:
    """Return a pipe, for its owner only, that gives the password to one reader after another until the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="rackwright-password-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    pipe = folder / "password"
    os.mkfifo(pipe, 0o600)
    spawn(lambda: _serve(pipe, f"{password}\n".encode()))
    return pipe


def open_password_file(site: Path) -> list[str]:
    """Return a warning for a file with a vault's password that others can read; not for a program that prints it."""
    named = os.environ.get(VARIABLE) or _configured(site)
    path = site / Path(named).expanduser() if named else None
    try:
        mode = path.stat().st_mode if path is not None else 0
    except OSError:
        return []
    if not stat.S_ISREG(mode) or mode & 0o111 or not mode & 0o044:
        return []
    return [f"warning: {path}: others can read the vault's password here; next: chmod 600 {path}"]


def _configured(site: Path) -> str:
    """Return the file that the site's ansible.cfg names; empty without one."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read(site / "ansible.cfg")
        return parser.get("defaults", "vault_password_file", fallback="")
    except (configparser.Error, OSError, ValueError):
        return ""


def _serve(pipe: Path, text: bytes) -> None:
    fresh = pipe.with_suffix(".new")
    while pipe.exists():
        try:
            with pipe.open("wb", buffering=0) as reader:
                # The next one to open it gets a pipe of his own: in this one he would read on where this reader is.
                os.mkfifo(fresh, 0o600)
                fresh.replace(pipe)
                reader.write(text)
        except BrokenPipeError:  # who opened it has gone
            continue
        except OSError:  # the folder has
            return
