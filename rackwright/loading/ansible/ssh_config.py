"""An SSH configuration for a host whose inventory says by which jump host it is reached: pyinfra takes only a file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rackwright.messages import writing
from rackwright.settings.ssh.args import configuration, options
from rackwright.settings.ssh.known_hosts import STRICT
from rackwright.settings.ssh.openssh import SYSTEM_FILE, USER_FILE, matters


def jump_of(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the key with the file for `ansible_ssh_common_args` and its kin; none where they ask for nothing.

    What the user's own file says of the host counts behind them. Raises ValueError, with what is not understood.
    """
    wanted = options(values)
    if not wanted:
        return {}
    address = str(values.get("ssh_hostname") or name.removeprefix("@ssh/"))
    checking = str(values.get(STRICT) or ("accept-new" if values.get("accept_new_host_keys") is True else "yes"))
    ansible_part = configuration(address, wanted, checking, values.get("ssh_known_hosts_file"))
    usual = Path(str(values.get("ssh_config_file") or USER_FILE)).expanduser()
    text = usual.read_text(errors="surrogateescape") if usual.is_file() else ""
    if not values.get("ssh_config_file") and matters(SYSTEM_FILE):
        text += f"\nHost *\nInclude {SYSTEM_FILE}\n"  # which ssh reads as well, unless it is given a file
    return {"ssh_config_file": str(_stored(f"{ansible_part}Host *\n{text}" if text else ansible_part))}


def _stored(text: str) -> Path:
    """Return the file with this text, named by it, so that another process finds it whole or not at all."""
    content = text.encode(errors="surrogateescape")
    folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "rackwright" / "ssh"
    path = folder / f"{hashlib.sha256(content).hexdigest()[:16]}.conf"
    if not path.exists():
        with writing(path):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            new = path.with_suffix(f".{os.getpid()}")
            new.touch(mode=0o600)
            new.write_bytes(content)
            new.replace(path)
    return path
