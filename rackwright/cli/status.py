"""`rackwright status INVENTORY`: what serves where, one line an endpoint."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from rackwright.adapter.run.poll import poll
from rackwright.adapter.run.session import chosen_hosts
from rackwright.cli.inventories import add_columns, add_limit
from rackwright.concerns.gateway.answer import common_address, health_url, served_certificate
from rackwright.exit_codes import done_if
from rackwright.inspect.status.columns import COLUMNS
from rackwright.inspect.status.script import status_script
from rackwright.loading.files import site_root
from rackwright.loading.host import InventoryHost
from rackwright.settings.host_settings import HostSettings
from rackwright.sources.lockfile import Locks

OUTPUT = "rackwright.inspect.status.output"
"""The maker of rows from the replies; half of all modules stand behind it, and no login waits for them."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("status", help="what serves where; 1 when a host cannot be read")
    add_limit(parser)
    add_columns(parser, COLUMNS)
    parser.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Read, print; 1 when nothing is known of a host."""
    entries = chosen_hosts(arguments.inventory, arguments.limit, arguments.only)
    root = site_root(Path(arguments.inventory).expanduser())
    settings = pinned(entries, root)
    distinct = {id(one): one for one in settings.values()}
    scripts = {key: _script(one) for key, one in distinct.items()}
    replies = poll(entries, lambda entry: scripts[id(settings[entry.name])], lambda: import_module(OUTPUT))
    output = import_module(OUTPUT)
    now = datetime.now(UTC).astimezone()
    rows = output.all_rows(settings, replies, root, now)
    whole = not (arguments.limit or arguments.only)
    addresses = {entry.name: entry.address for entry in entries}
    left_behind = output.left_hosts(root, Path(arguments.inventory), addresses, now) if whole else []
    print(
        output.as_json(rows, left_behind)
        if arguments.json
        else output.table(rows, left_behind, settings.values(), arguments.columns)
    )
    return done_if(all(row.gpus is not None for row in rows))


def _script(settings: HostSettings) -> str:
    url, address = health_url(settings), common_address(settings)
    return status_script(settings.all_endpoints, url, address, served_certificate(settings))


def pinned(entries: Sequence[InventoryHost], root: Path) -> dict[str, HostSettings]:
    """Return the settings of each host, the lock file's pins included; hosts that share their settings still do."""
    locks = Locks(root)
    distinct = {id(entry.settings): entry.settings for entry in entries}
    made = {key: locks.pin(settings) for key, settings in distinct.items()}
    return {entry.name: made[id(entry.settings)] for entry in entries}
