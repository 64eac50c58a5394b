"""What every command that takes an inventory shares."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from rackwright.commands.vault import PASSWORD_FILE
from rackwright.loading.choice import EVERYBODY, Choice
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError, SettingsError
from rackwright.pyinfra_glue.inventories import load_inventory
from rackwright.runs.selection import HELP
from rackwright.settings.problems import nearest


def add_inventory(parser: argparse.ArgumentParser, default: bool = False) -> None:
    """Add INVENTORY and where the vault password comes from to a command.

    default: whether it may be left out; not where another word follows, nor where the command takes things away.
    """
    own = "; left out: $RACKWRIGHT_INVENTORY, the one in ansible.cfg, or the site's only one"
    text = f"inventory/*.py, or an Ansible inventory{own if default else ''}"
    parser.add_argument("inventory", metavar="INVENTORY", nargs="?" if default else None, help=text)
    add_settings(parser)


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add what a command takes that loads the settings of an inventory as they are now."""
    add_data(parser)
    add_vault(parser)


def add_vault(parser: argparse.ArgumentParser) -> None:
    """Add where the vault password comes from to a command that loads settings."""
    password = parser.add_mutually_exclusive_group()
    password.add_argument(
        "--vault-password-file", metavar="FILE", help=f"file or program with the vault password (${PASSWORD_FILE})"
    )
    password.add_argument("--ask-vault-pass", action="store_true", help="ask for the vault password once")


def add_data(parser: argparse.ArgumentParser, what: str = "as pyinfra's --data") -> None:
    """Add settings that are stronger than any file; `cli.main` lets them count while the command runs."""
    parser.add_argument("--data", action="append", default=[], metavar="KEY=VALUE", help=what)


def data_of(args: argparse.Namespace) -> dict[str, Any]:
    """What `--data` says. Raises RackwrightError for a word that is no KEY=VALUE."""
    return dict(_pair(text) for text in args.data)


def _pair(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise RackwrightError(f"--data {text}: must be KEY=VALUE; nothing was done", code="RW1016")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def add_limit(parser: argparse.ArgumentParser, default: bool = False) -> None:
    """Add the same, and which hosts, to a command that connects to them."""
    add_inventory(parser, default)
    parser.add_argument("--limit", action="append", default=[], metavar="HOST|GROUP", help="as pyinfra's --limit")
    parser.add_argument("--only", action="append", default=[], metavar="STATE@RUN", help=HELP)


def hosts_of(args: argparse.Namespace, only: str | None = None, arguments: bool = True) -> list[InventoryHost]:
    """Hosts of the command's inventory; `only` picks one by name. Raises SettingsError for what is wrong with it.

    arguments: as in load_inventory.
    """
    choice = EVERYBODY if only is None else Choice(names=(only,))
    hosts = load_inventory(args.inventory, arguments, choice)
    return hosts if only is None else [pick(hosts, only, args.inventory)]


def pick(hosts: Sequence[InventoryHost], name: str, inventory: str) -> InventoryHost:
    """The host of that name. Raises SettingsError with the nearest right one."""
    for host in hosts:
        if host.name == name:
            return host
    hint = nearest(name, [host.name for host in hosts])
    raise SettingsError(f"{inventory} has no host {name}{hint}; next: rackwright check {inventory}", code="RW1008")
