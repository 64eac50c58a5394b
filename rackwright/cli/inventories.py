"""Steps that every command with an inventory shares."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from rackwright.adapter.run.inventories import limited, load_inventory
from rackwright.cli.vault import PASSWORD_FILE
from rackwright.loading.choice import Choice
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError, SettingsError
from rackwright.record.selection import HELP
from rackwright.tables import Column, name_of
from rackwright_engines.nearest import nearest

DAY = 24 * 3600
WILDCARD = frozenset("*?[")
"""Characters of a `--limit` that is a pattern."""
Arguments = argparse.ArgumentParser | argparse._MutuallyExclusiveGroup
SHARED: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "yes": (("-y", "--yes"), {"action": "store_true", "help": "do not ask"}),
    "json": (("--json",), {"action": "store_true", "help": "print JSON, for programs"}),
    "reason": (("--reason",), {"metavar": "TEXT", "help": "why; kept, and shown by `status` and later runs"}),
    "timeout": (("--timeout",), {"metavar": "SECONDS", "help": "longest time on each host"}),
}
"""Options that are the same in each verb that has them, by name; `--data`, `--limit` and `--only` are below."""


def add_shared(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add options of the table to a verb."""
    for name in names:
        flags, fields = SHARED[name]
        parser.add_argument(*flags, **fields)


def add_timeout(
    parser: argparse.ArgumentParser, what: str, default: int | None, least: int = 1, most: int = DAY
) -> None:
    """Add `--timeout`. what: the time of what it is; least, most: seconds that may be asked for."""
    flags, fields = SHARED["timeout"]
    parser.add_argument(
        *flags,
        **{**fields, "help": f"{fields['help']}: {what}"},
        type=lambda text: _seconds(text, least, most),
        default=default,
    )


def add_columns(parser: argparse.ArgumentParser, columns: Sequence[Column]) -> None:
    """Add `--columns` to a verb that prints rows, beside `--json`, which takes its place."""
    names = [name_of(column) for column in columns]
    shown = parser.add_mutually_exclusive_group()
    what = f"print a table of these columns, in this order: {','.join(names)}"
    shown.add_argument("--columns", type=lambda text: _columns(text, names), default=(), metavar="A,B", help=what)
    flags, fields = SHARED["json"]
    shown.add_argument(*flags, **fields)


def _seconds(text: str, least: int, most: int) -> int:
    if not text.isdecimal() or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text} must be a number of seconds between {least} and {most}")
    return int(text)


def _columns(text: str, names: Sequence[str]) -> list[str]:
    columns = [name for name in text.split(",") if name]
    wrong = [name for name in columns if name not in names]
    if wrong or not columns:
        hint = "".join(nearest(name, names) for name in wrong[:1])
        raise argparse.ArgumentTypeError(f"no column {', '.join(wrong) or text!r}{hint}; columns: {','.join(names)}")
    return columns


def add_inventory(parser: argparse.ArgumentParser) -> None:
    """Add INVENTORY and where the vault password comes from to a command."""
    text = (
        "inventory/*.py, or an Ansible inventory; left out: $RACKWRIGHT_INVENTORY, the one in ansible.cfg, or the "
        "site's only one"
    )
    parser.add_argument("inventory", metavar="INVENTORY", nargs="?", help=text)
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


def add_data(
    parser: argparse.ArgumentParser, what: str = "a setting that is stronger than any file, for this command alone"
) -> None:
    """Add settings that are stronger than any file; `cli.main` lets them count while the command runs."""
    parser.add_argument("--data", action="append", default=[], metavar="KEY=VALUE", help=what)


def data_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return what `--data` says. Raises RackwrightError for a word that is not KEY=VALUE."""
    return dict(_pair(text) for text in args.data)


def _pair(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise RackwrightError(f"--data {text}: must be KEY=VALUE; nothing was done", code="RW1016")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def add_hosts(parser: Arguments) -> None:
    """Add which hosts a command takes."""
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="HOST|GROUP",
        help="a host, a pattern or a group; may be repeated",
    )


def add_limit(parser: argparse.ArgumentParser) -> None:
    """Add the same, and which hosts, to a command that connects to them."""
    add_inventory(parser)
    add_hosts(parser)
    _add_only(parser)


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Add the same to a command that takes hosts out of service: it acts on all of them only with `--all`."""
    add_inventory(parser)
    which = parser.add_mutually_exclusive_group()
    add_hosts(which)
    which.add_argument("--all", action="store_true", help="all hosts of the inventory")
    _add_only(parser)


def _add_only(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", action="append", default=[], metavar="STATE@RUN", help=HELP)


def refuse_unchosen(args: argparse.Namespace) -> None:
    """Raise RackwrightError where a command that takes hosts out of service does not say which."""
    if not (args.limit or args.only or args.all):
        again = f"rackwright {args.command}{_verb_below(args)} {args.inventory}"
        raise RackwrightError(
            f"{args.command} needs its hosts named; nothing was done; next: {again} --limit HOST, or {again} --all",
            code="RW1038",
        )


def _verb_below(args: argparse.Namespace) -> str:
    return f" {args.verb}" if getattr(args, "verb", "") else ""


def hosts_of(args: argparse.Namespace, arguments: bool = True) -> list[InventoryHost]:
    """Hosts that `--limit` names, without a connection. Raises SettingsError for what is wrong with the inventory.

    arguments: as in load_inventory.
    """
    hosts = load_inventory(args.inventory, arguments, Choice(args.limit))
    refuse_unknown(hosts, args.limit, args.inventory)
    return limited(hosts, args.limit, args.inventory)


def refuse_unknown(hosts: Sequence[InventoryHost], limit: Sequence[str], inventory: str) -> None:
    """Raise SettingsError, with the nearest name, for a `--limit` that names no host and no group."""
    names = list(dict.fromkeys([*(host.name for host in hosts), *(group for host in hosts for group in host.groups)]))
    for name in limit:
        if name not in names and not WILDCARD.intersection(name):
            raise SettingsError(
                f"{inventory} has no host or group {name}{nearest(name, names)}; next: rackwright check {inventory}",
                code="RW1008",
            )


def one_of(args: argparse.Namespace, hosts: Sequence[InventoryHost]) -> InventoryHost:
    """Return the host of a command that takes one. Raises SettingsError when several are chosen."""
    if len(hosts) > 1:
        raise SettingsError(
            f"{len(hosts)} hosts are chosen, and {args.command} takes one at a time; next: rackwright {args.command} "
            f"{args.inventory} --limit {hosts[0].name}",
            code="RW1019",
        )
    return hosts[0]
