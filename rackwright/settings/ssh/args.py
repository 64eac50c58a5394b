"""Ansible's `ansible_ssh_common_args` and its kin, words for OpenSSH, as lines of an SSH configuration. Pure."""

from __future__ import annotations

import getopt
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

KEYS = ("ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args")
"""The variables, in the order in which Ansible puts them before ssh; of two equal options ssh takes the first."""
CHECKING = "stricthostkeychecking"
"""An option that is left out: host keys are checked anyway, by `ssh_strict_host_key_checking`."""
KEY_FILES = ("userknownhostsfile", "globalknownhostsfile")
NO_FILES = ("/dev/null", "none")
"""Values of these by which no key is checked: left out as well. A file with keys counts, as it does for ssh."""
SHARING = ("controlmaster", "controlpath", "controlpersist", "compression", "loglevel")
"""Options that change nothing of how a host is reached."""
FILE = "-F"
_OPTIONS = {"-J": "ProxyJump", "-i": "IdentityFile", "-p": "Port", "-l": "User"}
_SWITCHES = {"-A": "ForwardAgent yes", "-4": "AddressFamily inet", "-6": "AddressFamily inet6"}
_HARMLESS = "aCgkKnqTtvxXyY"
"""Switches that change nothing of how a host is reached."""
_UNCHECKED = re.compile(
    rf"\s-o\s*([\"']?)(?i:{CHECKING}[\s=]+[^\s\"']+|(?:{'|'.join(KEY_FILES)})[\s=]+(?:{'|'.join(NO_FILES)}))\1(?=\s|$)"
)
"""The same options within a ProxyCommand."""
_KEYWORD = re.compile(r"(\w+)(?:\s*=\s*|\s+)(\S.*)")
Option = tuple[str, str]
"""A keyword of ssh_config, and its value."""


def options(values: Mapping[str, Any]) -> list[Option]:
    """Return what the variables of a host ask for, without what turns the check of host keys off.

    Raises ValueError, with what is not understood.
    """
    found = [option for key in KEYS if key in values for option in parse(str(values[key]))]
    if (files := [value for name, value in found if name == FILE]) and not values.get("ssh_config_file"):
        raise ConfigFileError(
            f"{FILE} {files[0]} is not taken here: set `ssh_config_file: {files[0]}` (relative to the site) beside it, "
            "which does the same"
        )
    return [(name, value) for name, value in found if not _is_left_out(name.lower(), value)]


def _is_left_out(name: str, value: str) -> bool:
    return name in (CHECKING, *SHARING, FILE.lower()) or (name in KEY_FILES and value.strip("\"' ").lower() in NO_FILES)


class ConfigFileError(ValueError):
    """A file is passed to ssh that no setting has."""


def parse(text: str) -> list[Option]:
    """Return the words of one variable. Raises ValueError, with what is not understood."""
    if not text.isprintable():
        raise ValueError("it has a line break or another character that does not print")
    try:
        found, remaining = getopt.getopt(shlex.split(text), f"{_HARMLESS}A46o:J:i:p:l:F:")
    except getopt.GetoptError as error:
        raise ValueError(f"-{error.opt}" if error.opt else str(error)) from None
    if remaining:
        raise ValueError(" ".join(remaining))
    return [option for letter, value in found for option in _option(letter, value)]


def _option(letter: str, value: str) -> Iterator[Option]:
    if letter == "-o":
        yield _keyword(value)
    elif letter == FILE:
        yield letter, value
    elif letter in _OPTIONS:
        yield _OPTIONS[letter], value
    elif letter in _SWITCHES:
        yield _keyword(_SWITCHES[letter])


def _keyword(text: str) -> Option:
    """`Keyword value` or `Keyword=value`. Raises ValueError for another text."""
    found = _KEYWORD.fullmatch(text.strip())
    if not found:
        raise ValueError(f"-o {text}")
    return found[1], found[2]


def configuration(address: str, wanted: Sequence[Option], checking: str, known_hosts: str | None) -> str:
    """Return the lines for one host, and for the jump hosts before it, whose keys are checked as its own.

    checking: `yes` or `accept-new`. known_hosts: the file with the hosts' keys; None: the usual one.
    """
    keys = [("StrictHostKeyChecking", checking), *([("UserKnownHostsFile", known_hosts)] if known_hosts else [])]
    rows = [_line(name, _checked(value, keys) if name.lower() == "proxycommand" else value) for name, value in wanted]
    jumps = ["\n".join([f"Host {hop}", *(_line(*key) for key in keys)]) for hop in _hops(wanted)]
    return "\n".join([f"Host {address}", *rows, *jumps]) + "\n"


def _line(name: str, value: str) -> str:
    return f"  {name} {value}"


def _checked(command: str, keys: Sequence[Option]) -> str:
    """Return a ProxyCommand whose ssh checks the jump host's key as a ProxyJump would; another program is unchanged."""
    program, _, arguments = _UNCHECKED.sub("", f" {command}").strip().partition(" ")
    if PurePath(program).name != "ssh":
        return command
    return " ".join([program, *(f"-o {shlex.quote(f'{name}={value}')}" for name, value in keys), arguments])


def _hops(wanted: Sequence[Option]) -> list[str]:
    """Return the names of the jump hosts, without login and port."""
    jumps = next((value for name, value in wanted if name.lower() == "proxyjump"), "")
    hops = [hop.strip().rpartition("@")[2] for hop in jumps.split(",") if hop.strip() not in ("", "none")]
    return [hop if hop.count(":") > 1 else hop.partition(":")[0] for hop in hops]
