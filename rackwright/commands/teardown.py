"""`rackwright teardown INVENTORY`: remove what Rackwright put on the hosts, and say what it left."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

from rackwright.commands.inventories import add_limit
from rackwright.fleet.ending import ERROR
from rackwright.fleet.journal import read_record
from rackwright.fleet.record import TEARDOWN
from rackwright.fleet.running import Run, begin, phase
from rackwright.fleet.states import RunState
from rackwright.processes import module
from rackwright.session import chosen_hosts
from rackwright.settings.files import site_root


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("teardown", help="remove what Rackwright put on the hosts, and nothing else")
    add_limit(parser)
    parser.add_argument("--purge", action="store_true", help="models and images too")
    parser.add_argument("--dry", action="store_true", help="show what would be removed")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the teardown through pyinfra; returns its exit status."""
    hosts = chosen_hosts(arguments.inventory, arguments.limit, arguments.only)
    if not arguments.dry and not arguments.yes and not _agreed([entry.name for entry in hosts], arguments.purge):
        print("nothing was done", file=sys.stderr)
        return 1
    with as_file(files("rackwright.deploys") / "teardown.py") as deploy:
        if arguments.dry:
            return _look_ahead(arguments, deploy, [entry.name for entry in hosts])
        root = site_root(Path(arguments.inventory)).absolute()
        started = begin(arguments.inventory, root, hosts, TEARDOWN, purge=arguments.purge)
        if why := started.vetoed():
            return started.end(ERROR, f"{why}; nothing was done")
        return started.end(*tear_down(started, deploy, arguments.purge))


def tear_down(run: Run, deploy: Path, purge: bool) -> tuple[int, str]:
    """Tear the run's hosts down; returns the exit status and what to say."""
    started = run.as_plain()
    started.note("phase", name=TEARDOWN)
    status = started.pyinfra(deploy, started.hosts, {}, **environment(purge))
    found = phase(started, TEARDOWN)
    left = [host for host in started.hosts if found.states.get(host) != RunState.DONE]
    kept = any(event["kind"] == "left" and event.get("kept") for event in read_record(started.record))
    return status or (ERROR if left else 0), ending(left, kept)


def ending(left: Sequence[str], kept: bool) -> str:
    """How a teardown ended, in words. left: hosts that are not known to be clean. kept: something stays on purpose."""
    if left:
        return f"not everything is gone, or known to be gone, from {', '.join(left)}, see above"
    return "done: gone, but for what is left on purpose, see above" if kept else "done: nothing of it is left"


def environment(purge: bool) -> dict[str, str]:
    """What the deploy that tears down is told."""
    return {"RACKWRIGHT_PURGE": "yes" if purge else "no"}


def _look_ahead(arguments: argparse.Namespace, deploy: Path, hosts: list[str]) -> int:
    inventory = Path(arguments.inventory).expanduser().absolute()
    words = [*module("pyinfra"), str(inventory), str(deploy), "--dry"]
    words += [word for name in hosts for word in ("--limit", name)]
    known = {**os.environ, **environment(arguments.purge)}
    return subprocess.run(words, cwd=site_root(inventory), env=known, check=False).returncode


def _agreed(hosts: list[str], purge: bool) -> bool:
    print(f"This stops the endpoints of {', '.join(hosts)} and removes what Rackwright put there", end="")
    print(", models and images included." if purge else "; models and images stay.")
    try:
        return input("Type yes to go on: ").strip() == "yes"
    except EOFError:
        return False
