"""`rackwright teardown INVENTORY`: remove what Rackwright put on the hosts, and say what it left."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from importlib.resources import as_file, files
from pathlib import Path

from rackwright.session import chosen_hosts


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("teardown", help="remove what Rackwright put on the hosts, and nothing else")
    parser.add_argument("inventory")
    parser.add_argument("--limit", action="append", default=[], metavar="HOST|GROUP", help="as pyinfra's --limit")
    parser.add_argument("--purge", action="store_true", help="models and images too")
    parser.add_argument("--dry", action="store_true", help="show what would be removed")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the teardown through pyinfra; returns its exit status."""
    hosts = chosen_hosts(arguments.inventory, arguments.limit)
    if not arguments.dry and not arguments.yes and not _agreed([entry.name for entry in hosts], arguments.purge):
        print("nothing was done", file=sys.stderr)
        return 1
    with as_file(files("rackwright.deploys") / "teardown.py") as deploy:
        words = [str(Path(sys.executable).parent / "pyinfra"), arguments.inventory, str(deploy)]
        words += [word for pattern in arguments.limit for word in ("--limit", pattern)]
        words.append("--dry" if arguments.dry else "-y")
        purge = "yes" if arguments.purge else "no"
        return subprocess.run(words, env={**os.environ, "RACKWRIGHT_PURGE": purge}, check=False).returncode


def _agreed(hosts: list[str], purge: bool) -> bool:
    print(f"This stops the endpoints of {', '.join(hosts)} and removes what Rackwright put there", end="")
    print(", models and images included." if purge else "; models and images stay.")
    try:
        return input("Type yes to go on: ").strip() == "yes"
    except EOFError:
        return False
