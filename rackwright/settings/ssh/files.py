"""What the user's own SSH files say of a host: ~/.ssh/config and known_hosts, before anything connects."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import paramiko

CONFIG = "~/.ssh/config"


def stated_of(host: str, file: object = None) -> Mapping[str, str]:
    """The options of an SSH configuration for a host, by their names in lower case; file: default `~/.ssh/config`."""
    return _config(str(file or CONFIG)).lookup(host)


def has_key(file: str, entry: str) -> bool:
    """Whether a known_hosts file has any key of a host by that name, hashed or plain."""
    return bool(_keys(file).lookup(entry))


@cache
def _config(file: str) -> paramiko.SSHConfig:
    path = Path(file).expanduser()
    return paramiko.SSHConfig.from_path(str(path)) if path.is_file() else paramiko.SSHConfig()


@cache
def _keys(file: str) -> paramiko.HostKeys:
    path = Path(file).expanduser()
    return paramiko.HostKeys(str(path) if path.is_file() else None)
