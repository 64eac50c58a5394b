"""`rackwright undrain INVENTORY --limit HOST`: start and ask what drained hosts served; runs take them again."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rackwright.cli.drain import chosen
from rackwright.cli.inventories import add_choice, add_shared
from rackwright.cli.rollout import agreed
from rackwright.exit_codes import ExitCode
from rackwright.loading.files import site_root
from rackwright.record.record import UNDRAIN
from rackwright.rollout.launch import begin
from rackwright.rollout.maintenance.capacity import refuse_halves
from rackwright.rollout.maintenance.host_marks import drained_hosts
from rackwright.rollout.maintenance.in_waves import take_in


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("undrain", help="take drained hosts into service again: started, asked, let in")
    add_choice(parser)
    add_shared(parser, "yes")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Say why each is drained, ask, take in; returns the exit status. Raises RackwrightError."""
    hosts = chosen(args)[1]
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
