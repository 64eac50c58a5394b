"""`rackwright exec INVENTORY -- CMD`: a command of yours on every chosen host."""

from __future__ import annotations

import argparse
import shlex

from rackwright.cli.inventories import add_limit, add_shared, add_timeout
from rackwright.inspect.run_script import show, spread
from rackwright.plan.change import Shell


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("exec", help="run a command on every chosen host; 1 when it failed somewhere")
    add_limit(parser)
    add_timeout(parser, "of the command", 600)
    add_shared(parser, "json")
    parser.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Run it, print what every host said."""
    script = Shell(shlex.join(arguments.words), timeout=arguments.timeout)
    return show(spread(arguments.inventory, arguments.limit, lambda _: script, arguments.only), arguments.json)
