"""`rackwright undrain HOST`: start what a drained host served, ask it, and let runs take the host again."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rackwright.commands.drain import add_hosts, named
from rackwright.commands.rollout import agreed
from rackwright.exit_codes import ExitCode
from rackwright.fleet.maintenance.capacity import refuse_halves
from rackwright.fleet.maintenance.control import take_in
from rackwright.fleet.maintenance.drained_hosts import drained_hosts
from rackwright.fleet.rollout.launch import begin
from rackwright.loading.files import site_root
from rackwright.pyinfra_glue.session import hosts_named
from rackwright.runs.record import UNDRAIN


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("undrain", help="take drained hosts into service again: started, asked, let in")
    add_hosts(parser)
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Say why each is drained, ask, take in; returns the exit status. Raises RackwrightError."""
    hosts = named(hosts_named(args.inventory, args.hosts), args.hosts, args.inventory)
    refuse_halves(hosts, "undrain")
    marks = drained_hosts(hosts)
    for host in hosts:
        print(f"rackwright: {host.name}: {marks.get(host.name, 'not drained, or not to be read now')}")
    if not args.yes and not agreed(f"This starts what {', '.join(host.name for host in hosts)} served, and asks it."):
        print("nothing was done", file=sys.stderr)
        return ExitCode.ERROR
    root = site_root(Path(args.inventory).expanduser()).absolute()
    started = begin(args.inventory, root, hosts, UNDRAIN)
    if why := started.vetoed():
        return started.end(ExitCode.ERROR, f"{why}; nothing was done")
    return started.end(*take_in(started))
