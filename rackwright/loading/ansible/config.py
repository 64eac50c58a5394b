"""ansible.cfg and ANSIBLE_ variables: how they say that hosts are reached, as Ansible itself dumps it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rackwright.loading.ansible.bounded import run_bounded
from rackwright.loading.ansible.command import CONFIG, command, environment, first_error
from rackwright.messages import SettingsError
from rackwright.settings.origin import Origin
from rackwright.settings.ssh import args as ssh_args

TAKEN = {
    "DEFAULT_REMOTE_USER": "ansible_user",
    "DEFAULT_REMOTE_PORT": "ansible_port",
    "DEFAULT_PRIVATE_KEY_FILE": "ansible_ssh_private_key_file",
    "DEFAULT_BECOME": "ansible_become",
    "DEFAULT_BECOME_USER": "ansible_become_user",
    "become_user": "ansible_become_user",
    "DEFAULT_BECOME_METHOD": "ansible_become_method",
    "DEFAULT_TRANSPORT": "ansible_connection",
    **{key.removeprefix("ansible_"): key for key in ssh_args.KEYS},
}
"""Ansible's name for it in a dump, and the variable that says the same of a host."""
TIMEOUT = "timeout (ConnectTimeout in the SSH configuration)"
KEY_CHECKING = "host_key_checking (host keys are always checked; for a first contact: accept_new_host_keys)"
NAMED = {
    **dict.fromkeys(("DEFAULT_TIMEOUT", "timeout"), TIMEOUT),
    "DEFAULT_ASK_PASS": "ask_pass (keys or an agent alone)",
    "DEFAULT_BECOME_ASK_PASS": "become_ask_pass (sudo without a password alone)",
    "BECOME_PASSWORD_FILE": "become_password_file (sudo without a password alone)",
    "CONNECTION_PASSWORD_FILE": "connection_password_file (keys or an agent alone)",
    **dict.fromkeys(("DEFAULT_BECOME_EXE", "become_exe"), "become_exe (executable)"),
    **dict.fromkeys(("DEFAULT_BECOME_FLAGS", "become_flags"), "become_flags (flags)"),
    **dict.fromkeys(("HOST_KEY_CHECKING", "host_key_checking"), KEY_CHECKING),
    "ssh_executable": "ssh_executable",
}
"""Values that are not taken, in the words of ansible.cfg."""
KEYS = re.compile(
    r"^\s*(remote_user|remote_port|private_key_file|transport|timeout|ask_pass|host_key_checking|become\w*|ssh_\w*args"
    r"|ssh_executable|connection_password_file|user|flags|executable)\s*[=:]",
    re.MULTILINE,
)
VARIABLES = re.compile(
    r"ANSIBLE_(REMOTE_USER|REMOTE_PORT|PRIVATE_KEY_FILE|TRANSPORT|(SSH_)?TIMEOUT|ASK_PASS|(SSH_)?HOST_KEY_CHECKING|"
    r"BECOME\w*|SSH_\w*ARGS|SSH_EXECUTABLE|CONNECTION_PASSWORD_FILE|SUDO_\w+)"
)
SUDO = re.compile(r"^\s*\[sudo_become_plugin\]", re.MULTILINE)
SECONDS = 60
"""Within which Ansible must have dumped it."""
USUAL = ("~/.ansible.cfg", "/etc/ansible/ansible.cfg")


@dataclass(frozen=True)
class AnsibleConfig:
    """Values of ansible.cfg for every host, and those of them that are not taken."""

    values: Mapping[str, Any] = field(default_factory=dict)
    """By the variable that says the same of a host."""
    origins: Mapping[str, Origin] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    """Lines."""


def configured(site: Path) -> AnsibleConfig:
    """Return what ansible.cfg and the environment say of the way to hosts; without such settings it costs nothing.

    Raises SettingsError when Ansible cannot read it.
    """
    if not any(VARIABLES.fullmatch(name) for name in os.environ) and not KEYS.search(_text(site)):
        return AnsibleConfig()
    found = [*_dumped(site), *_dumped(site, "-t", "connection", "ssh")]
    if SUDO.search(_text(site)) or any(name.startswith("ANSIBLE_SUDO_") for name in os.environ):
        found += _dumped(site, "-t", "become", "sudo")
    taken = {TAKEN[one["name"]]: one for one in found if one["name"] in TAKEN and _counts(one)}
    left_out = dict[str, list[str]]()
    for one in found:
        if one["name"] in NAMED and (one["name"].lower() != "host_key_checking" or one["value"] is False):
            left_out.setdefault(str(one["origin"]), []).append(NAMED[one["name"]])
    return AnsibleConfig(
        {key: one["value"] for key, one in taken.items()},
        {key: Origin(str(one["origin"])) for key, one in taken.items()},
        tuple(f"{origin}: not taken: {', '.join(dict.fromkeys(names))}" for origin, names in left_out.items()),
    )


def _counts(one: Mapping[str, Any]) -> bool:
    """`become = false` does not: a playbook says `become: true` over it, and so do the steps of a site."""
    return one["value"] is not None and (one["name"] != "DEFAULT_BECOME" or one["value"] is True)


def _dumped(site: Path, *which: str) -> Iterator[dict[str, Any]]:
    words = [command("ansible-config"), "dump", "--only-changed", "--format", "json", *which]
    answer = run_bounded(words, SECONDS, folder=site, environment=environment(site))
    try:
        loaded = json.loads(answer.output)
    except ValueError:
        again = " ".join(["ansible-config", *words[1:]])
        raise SettingsError(
            f"{site / CONFIG}: Ansible cannot read its configuration: {first_error(answer.errors)}\nnext: {again}",
            code="RW0235",
        ) from None
    yield from _entries(loaded)


def _entries(loaded: Any) -> Iterator[dict[str, Any]]:
    """Yield the entries of a dump, those of a plugin included."""
    for one in loaded if isinstance(loaded, list) else ():
        if {"name", "origin", "value"} <= one.keys():
            yield one
        else:
            for below in one.values():
                yield from _entries(below)


def _text(site: Path) -> str:
    """Return the file that Ansible reads, as far as it can be read."""
    named = os.environ.get("ANSIBLE_CONFIG")
    places = [Path(named).expanduser()] if named else []
    for path in [*places, site / CONFIG, *(Path(name).expanduser() for name in USUAL)]:
        file = path / CONFIG if path.is_dir() else path
        if file.is_file():
            try:
                return file.read_text(errors="replace")
            except OSError:
                return ""
    return ""
