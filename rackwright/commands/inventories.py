"""What every command that takes an inventory shares."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rackwright.commands.vault import PASSWORD_FILE
from rackwright.errors import SettingsError
from rackwright.loading.load import InventoryHost
from rackwright.pyinfra_glue.inventories import load_inventory
from rackwright.runs.selection import HELP
from rackwright.settings.problems import nearest


def add_inventory(parser: argparse.ArgumentParser) -> None:
    """Add INVENTORY and where the vault password comes from to a command."""
    parser.add_argument("inventory", metavar="INVENTORY", help="inventory/*.py, or an Ansible inventory")
    add_vault(parser)


def add_vault(parser: argparse.ArgumentParser) -> None:
    """Add where the vault password comes from to a command that loads settings."""
    password = parser.add_mutually_exclusive_group()
    password.add_argument(
        "--vault-password-file", metavar="FILE", help=f"file or program with the vault password (${PASSWORD_FILE})"
    )
    password.add_argument("--ask-vault-pass", action="store_true", help="ask for the vault password once")


def add_limit(parser: argparse.ArgumentParser) -> None:
    """Add the same, and which hosts, to a command that connects to them."""
    add_inventory(parser)
    parser.add_argument("--limit", action="append", default=[], metavar="HOST|GROUP", help="as pyinfra's --limit")
    parser.add_argument("--only", action="append", default=[], metavar="STATE@RUN", help=HELP)


def hosts_of(args: argparse.Namespace, only: str | None = None) -> list[InventoryHost]:
    """Hosts of the command's inventory; `only` picks one by name. Raises SettingsError for what is wrong with it."""
    hosts = load_inventory(args.inventory)
    return hosts if only is None else [pick(hosts, only, args.inventory)]


def pick(hosts: Sequence[InventoryHost], name: str, inventory: str) -> InventoryHost:
    """The host of that name. Raises SettingsError with the nearest right one."""
    for host in hosts:
        if host.name == name:
            return host
    hint = nearest(name, [host.name for host in hosts])
    raise SettingsError(f"{inventory} has no host {name}{hint}; next: rackwright check {inventory}", code="RW1008")
