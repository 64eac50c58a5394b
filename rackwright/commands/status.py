"""`rackwright status INVENTORY`: what serves where, one line an endpoint."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rackwright.commands.inventories import add_limit
from rackwright.engines.requests import ignored_parameters
from rackwright.errors import ReadingError
from rackwright.fleet.inspect.left_hosts import left_hosts
from rackwright.fleet.inspect.status.last_runs import last_runs
from rackwright.fleet.inspect.status.reading import Asked, parse
from rackwright.fleet.inspect.status.rows import StatusRow, rows_of, unknown_row, values_of
from rackwright.fleet.inspect.status.table import render
from rackwright.fleet.rollout.quarantine import load_quarantine
from rackwright.loading.files import site_root
from rackwright.loading.load import InventoryHost
from rackwright.printable import paragraph
from rackwright.pyinfra_glue.poll import Reply, poll
from rackwright.pyinfra_glue.session import chosen_hosts
from rackwright.sources.lockfile import Locks


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("status", help="what serves where; 1 when a host cannot be read")
    add_limit(parser, default=True)
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Read, print; 1 when nothing is known of a host."""
    entries = chosen_hosts(arguments.inventory, arguments.limit, arguments.only)
    root = site_root(Path(arguments.inventory).expanduser())
    asked = _asked(entries, root)
    replies = poll(entries, lambda entry: asked[entry.name].script)
    now = datetime.now(UTC).astimezone()
    runs = last_runs(root, asked.keys(), now)
    found = {entry.name: rows_on(entry.name, asked[entry.name], replies[entry.name], now) for entry in entries}
    aside = {host: f"since {entry.since}, {entry.why}" for host, entry in load_quarantine(root).items()}
    rows = [
        replace(row, last_run=runs.get(host, ""), quarantine=aside.get(host, ""))
        for host, own in found.items()
        for row in own
    ]
    whole = not (arguments.limit or arguments.only)
    left = left_hosts(root, Path(arguments.inventory), asked.keys(), now) if whole else []
    if arguments.json:
        print(json.dumps({**values_of(rows), "left_behind": left}, indent=1))
    else:
        print(paragraph("\n".join([render(rows), *ignored_of([*asked.values()]), *left])))
    return 0 if all(row.gpus is not None for row in rows) else 1


def _asked(entries: Sequence[InventoryHost], root: Path) -> dict[str, Asked]:
    """What is asked of each host, the lock file's pins included; hosts that share their settings share it."""
    locks = Locks(root)
    distinct = {id(entry.settings): entry.settings for entry in entries}
    made = {key: Asked(locks.pin(settings)) for key, settings in distinct.items()}
    return {entry.name: made[id(entry.settings)] for entry in entries}


def ignored_of(hosts: Sequence[Asked]) -> list[str]:
    """Parameters of requests that are ignored, a line for each endpoint name and reason."""
    found = {
        f"endpoint {name}: it ignores {', '.join(ignored.parameters)} of requests: {ignored.text}"
        for asked in {id(one): one for one in hosts}.values()
        for name, endpoint in asked.endpoints.items()
        for ignored in ignored_parameters(endpoint)
    }
    return sorted(found)


def rows_on(name: str, asked: Asked, reply: Reply, now: datetime) -> list[StatusRow]:
    """The rows of one host, or one that says why nothing is known."""
    if reply.trouble:
        return [unknown_row(name, reply.trouble)]
    try:
        return rows_of(name, asked, parse(reply.lines), now)
    except ReadingError as error:
        return [unknown_row(name, str(error))]
