"""Connections to a host: pyinfra's keys, Ansible's names for them, and what is refused, with reasons."""

from __future__ import annotations

import getpass
import re
from collections.abc import Mapping, Sequence
from fnmatch import translate
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from rackwright.settings.inventory_groups import PRIORITY
from rackwright.settings.sections import Frozen, Line
from rackwright.settings.ssh.known_hosts import STRICT, is_by_ssh, question_of
from rackwright.settings.ssh.openssh import ask

Delay = Annotated[float, Field(ge=0, le=3600)]
"""Seconds."""

RENAMED = {
    "ansible_host": "ssh_hostname",
    "ansible_ssh_host": "ssh_hostname",
    "ansible_port": "ssh_port",
    "ansible_ssh_port": "ssh_port",
    "ansible_user": "ssh_user",
    "ansible_ssh_user": "ssh_user",
    "ansible_ssh_private_key_file": "ssh_key",
    "ansible_private_key_file": "ssh_key",
    "ansible_become": "_sudo",
    "ansible_become_user": "_sudo_user",
}
"""Ansible's connection variables, and pyinfra's names for them."""

METHODS = {
    "ansible_become_method": ("sudo", "ansible.builtin.sudo"),
    "ansible_connection": (
        "ssh",
        "smart",
        "paramiko",
        "paramiko_ssh",
        "ansible.builtin.ssh",
        "ansible.builtin.paramiko_ssh",
    ),
}
"""How Ansible reaches a host and becomes root, as far as it is done so here."""
WHY_ELSE = {
    "ansible_become_method": "is not used here, sudo alone: allow the login sudo without a password, and write sudo",
    "ansible_connection": "is not used here, SSH alone: write ssh, or leave the host out of the inventory",
}
NOT_TAKEN = (
    *("ansible_become_exe", "ansible_become_flags", "ansible_sudo_exe", "ansible_sudo_flags", "ansible_timeout"),
    *("ansible_ssh_timeout", "ansible_ssh_executable", "ansible_host_key_checking", "ansible_ssh_host_key_checking"),
    *("ansible_paramiko_proxy_command", "ansible_paramiko_host_key_checking", "ansible_ssh_private_key"),
    *("ansible_ssh_private_key_passphrase", "ansible_shell_type", "ansible_shell_executable", "ansible_remote_tmp"),
)
"""Ansible's variables for the way to a host that are reported, and do not count."""

_PASSWORD = "passwords are refused, since pyinfra prints them at --debug: use an SSH key or an agent"
_SUDO = "sudo passwords are refused, since they show in the host's process list: allow this user sudo without one"

REFUSED = {
    "ssh_password": _PASSWORD,
    "ssh_key_password": _PASSWORD,
    "ansible_password": _PASSWORD,
    "ansible_ssh_pass": _PASSWORD,
    "ansible_ssh_password": _PASSWORD,
    "_sudo_password": _SUDO,
    "_use_sudo_password": _SUDO,
    "ansible_become_pass": _SUDO,
    "ansible_become_password": _SUDO,
    "ansible_sudo_pass": _SUDO,
    PRIORITY: "counts only in the inventory itself, as in Ansible",
}
"""Keys that are known and not taken, with the reason."""


HOSTNAME = r"^(?:[A-Za-z0-9_][A-Za-z0-9._%-]*|[0-9A-Fa-f]*:[0-9A-Fa-f.]*:[0-9A-Fa-f.:]*(?:%[A-Za-z0-9._-]+)?)$"
"""A name of DNS, or an address: nothing that ssh would take for an option."""

PORT = re.compile(r"[0-9]{1,5}")
PATTERNS = 200
"""Patterns of `own_keys` at most: each is tried on each key of a site."""


class Connection(Frozen):
    """The connection to a host, and what the loader itself needs to know."""

    ssh_hostname: Annotated[str, Field(pattern=HOSTNAME)] | None = None
    """Address of the host; default: its name in the inventory. Ansible: ansible_host."""
    ssh_port: int | None = Field(default=None, ge=1, le=65535)
    """Port of sshd. Ansible: ansible_port."""
    ssh_user: Line | None = None
    """Login; default: that of ~/.ssh/config, or your own. Ansible: ansible_user."""
    ssh_key: Line | None = None
    """Private key file on the control machine, relative to the site. Ansible: ansible_ssh_private_key_file."""
    ssh_allow_agent: bool | None = None
    """True to try keys of a running SSH agent; default: true."""
    ssh_look_for_keys: bool | None = None
    """True to try keys in ~/.ssh with the usual names (`id_*`); default: true."""
    ssh_forward_agent: bool | None = None
    """True to let the host use your SSH agent while you are logged in; default: false. Rackwright never needs it."""
    ssh_config_file: Line | None = None
    """SSH configuration file, relative to the site; default ~/.ssh/config."""
    ssh_known_hosts_file: Line | None = None
    """File with the hosts' keys, relative to the site; default ~/.ssh/known_hosts."""
    ssh_strict_host_key_checking: Literal["yes", "accept-new"] | None = None
    """`yes`: only hosts with a known key. Set `accept_new_host_keys` for a first contact."""
    ssh_connect_retries: int | None = Field(default=None, ge=0, le=1000)
    """Further tries after a login that failed; default: none."""
    ssh_connect_retry_min_delay: Delay | None = None
    """Shortest pause between two such tries, in seconds; default: 0.1."""
    ssh_connect_retry_max_delay: Delay | None = None
    """Longest pause between two such tries, in seconds; default: 0.5. Each pause is a random one between both."""
    ssh_file_transfer_protocol: Literal["sftp", "scp"] | None = None
    """How pyinfra carries files to the host; default: `sftp`."""
    sudo: bool | None = Field(default=None, alias="_sudo")
    """Work as root through sudo; default: true unless the login is root. Ansible: ansible_become."""
    sudo_user: Literal["root"] | None = Field(default=None, alias="_sudo_user")
    """Only root: Rackwright's steps need it. Ansible: ansible_become_user."""
    shell_executable: Line | None = Field(default=None, alias="_shell_executable")
    """Shell on the host that pyinfra hands its commands to; default: `sh`."""
    accept_new_host_keys: bool = False
    """True takes the key of a host that is not in known_hosts yet. A changed key is refused anyway."""
    own_keys: tuple[Line, ...] = Field(default=(), max_length=PATTERNS)
    """Names of your own, patterns allowed (`ntp_*`), that pass into host.data unread."""


KEYS = {field.alias or name: name for name, field in Connection.model_fields.items()}
"""Key in the YAML files, and the model's field."""

FILES = ("ssh_key", "ssh_config_file", "ssh_known_hosts_file")
"""Keys that name a file on the control machine; a path is relative to the site."""

TRUE, FALSE = ("yes", "true", "on", "1"), ("no", "false", "off", "0")


def rename(key: str, value: Any) -> tuple[str, Any]:
    """Ansible's name and value as pyinfra's; other keys come back unchanged.

    INI inventories give `true` and `22` as text, so switches and ports are read as Ansible reads them.
    """
    new = RENAMED.get(key, key)
    if new == "_sudo" and isinstance(value, str | int):
        text = str(value).lower()
        return new, True if text in TRUE else False if text in FALSE else value
    if new == "ssh_port" and isinstance(value, str) and PORT.fullmatch(value):
        return new, int(value)
    return new, value


def placed(values: Mapping[str, Any], site: Path) -> dict[str, Any]:
    """Return the same, with relative file names as paths in the site: pyinfra would look in the user's folder."""
    return {
        key: str(site / value) if key in FILES and isinstance(value, str) and not value.startswith("~") else value
        for key, value in values.items()
    }


def defaults(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return connection data that follows from the rest: strict host keys, and sudo unless the login is root."""
    found: dict[str, Any] = {}
    if not is_by_ssh(name):
        return found
    if STRICT not in values:
        found[STRICT] = "accept-new" if values.get("accept_new_host_keys") is True else "yes"
    if "_sudo" not in values:
        found["_sudo"] = login(name, values) != "root"
    return found


def login(name: str, values: Mapping[str, Any]) -> str:
    """Return the user that SSH logs in as: stated, or that of the SSH configuration, or the local one."""
    stated = values.get("ssh_user")
    if isinstance(stated, str):
        return stated
    return ask(question_of(name, values)).get("user") or getpass.getuser()


# -- names of the site's own


def is_own(key: str, patterns: Sequence[object]) -> bool:
    """Return True if `own_keys` lets a key pass; it lets none where it has more patterns than it may."""
    return len(patterns) <= PATTERNS and _any_of(tuple(map(str, patterns))).fullmatch(key) is not None


@cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)) or "(?!)")
