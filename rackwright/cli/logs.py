"""`rackwright logs INVENTORY`: the last lines of every endpoint's journal."""

from __future__ import annotations

import argparse

from rackwright.cli.inventories import add_limit, add_shared
from rackwright.inspect.run_script import show, spread
from rackwright.paths import unit_name
from rackwright.plan.change import Shell
from rackwright.settings.host_settings import HostSettings


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("logs", help="the last lines of every endpoint's journal")
    add_limit(parser)
    parser.add_argument("-n", "--lines", type=int, default=20, metavar="N", help="lines of each endpoint")
    add_shared(parser, "json")
    parser.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the lines host by host."""
    lines = arguments.lines
    outputs = spread(arguments.inventory, arguments.limit, lambda settings: journal(settings, lines), arguments.only)
    return show(outputs, arguments.json)


def journal(settings: HostSettings, lines: int) -> Shell:
    """Return the command that prints them."""
    units = [unit_name(name) for name in settings.all_endpoints]
    words = "journalctl --no-pager --quiet --output short-iso"
    return Shell("\n".join(f"{words} --lines {lines} --unit {unit}" for unit in units), timeout=60)
