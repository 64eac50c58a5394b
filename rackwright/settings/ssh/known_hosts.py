"""Which hosts SSH is going to refuse, because their key is not known yet: told before, with what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rackwright.settings.connection import STRICT
from rackwright.settings.ssh.files import has_key, stated_of

DEFAULT_FILE = "~/.ssh/known_hosts"
SSH_PORT = 22


@dataclass(frozen=True)
class HostKeyPlace:
    """Where a host is reached, and where its key is kept: as pyinfra and OpenSSH have it."""

    address: str
    port: int
    entry: str
    """Its name in known_hosts."""
    files: tuple[str, ...]
    """The files that are read, as they are named; a new key goes into the first."""


def place_of(name: str, data: Mapping[str, Any]) -> HostKeyPlace:
    """The place of a host, from its connection data and the SSH configuration."""
    stated = str(data.get("ssh_hostname") or name.removeprefix("@ssh/"))
    config = stated_of(stated, data.get("ssh_config_file"))
    address = config.get("hostname", stated)
    port = int(data.get("ssh_port") or config.get("port") or SSH_PORT)
    entry = address if port == SSH_PORT else f"[{address}]:{port}"
    files = [str(data["ssh_known_hosts_file"])] if data.get("ssh_known_hosts_file") else _configured(config)
    return HostKeyPlace(address, port, entry, tuple(files))


def is_unknown(name: str, data: Mapping[str, Any]) -> bool:
    """True when a host's key is checked strictly and is in none of the files that pyinfra reads."""
    if data.get(STRICT) != "yes":
        return False
    place = place_of(name, data)
    return not any(has_key(file, place.entry) for file in place.files)


def advice(names: list[str]) -> str:
    """One warning about all such hosts."""
    some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return (
        f"the host keys of {some} are not in known_hosts, so SSH will refuse them: "
        "ssh to each once and compare the key, or set accept_new_host_keys: true for the first contact"
    )


def _configured(config: Mapping[str, str]) -> list[str]:
    return config.get("userknownhostsfile", DEFAULT_FILE).split()
