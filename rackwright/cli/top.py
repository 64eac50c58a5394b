"""`rackwright top INVENTORY`: the fleet, live: what serves where, how much, and what each host does now."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from rackwright.adapter.run.session import chosen_hosts
from rackwright.cli.inventories import add_limit
from rackwright.cli.status import pinned
from rackwright.exit_codes import ExitCode, done_if
from rackwright.loading.files import site_root
from rackwright.record.view.live_run import is_terminal

OUTPUT = "rackwright.inspect.top.output"
"""The module that reads and draws: half of all modules are behind it."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("top", help="show live what each host serves and does; q ends it")
    add_limit(parser)
    parser.add_argument("--once", action="store_true", help="print one picture and end, as without a terminal")
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="write one picture as an HTML file that opens offline"
    )
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Read and draw; of one picture the exit status is 1 when a host could not be read. Raises RackwrightError."""
    entries = chosen_hosts(args.inventory, args.limit, args.only)
    root = site_root(Path(args.inventory).expanduser())
    top = import_module(OUTPUT).Top(args.inventory, root, entries, pinned(entries, root))
    if args.html:
        top.page(args.html)
        print(args.html)
    elif args.once or not is_terminal():
        top.once()
    else:
        top.live()
        return ExitCode.DONE
    return done_if(top.is_whole)
