"""`rackwright undrain INVENTORY --limit HOST`: start and ask what drained hosts served; runs take them again."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rackwright.cli.drain import chosen
from rackwright.cli.inventories import add_choice, add_shared
from rackwright.cli.rollout import agreed
from rackwright.exit_codes import ExitCode
from rackwright.loading.files import site_root
from rackwright.messages import RackwrightError
from rackwright.record.quarantine import Quarantined
from rackwright.record.record import UNDRAIN
from rackwright.rollout.launch import begin
from rackwright.rollout.maintenance.capacity import refuse_halves
from rackwright.rollout.maintenance.host_marks import drained_in, marks_of
from rackwright.rollout.maintenance.in_waves import take_in
from rackwright.rollout.maintenance.quarantine_marks import quarantined_by


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
    root = site_root(Path(args.inventory).expanduser()).absolute()
    marks = marks_of(hosts)
    refuse_quarantined([host.name for host in hosts], quarantined_by(marks, root, hosts))
    drained = drained_in(marks)
    for host in hosts:
        print(f"rackwright: {host.name}: {drained.get(host.name, 'not drained, or not to be read now')}")
    if not args.yes and not agreed(f"This starts what {', '.join(host.name for host in hosts)} served, and asks it."):
        print("nothing was done", file=sys.stderr)
        return ExitCode.ERROR
    started = begin(args.inventory, root, hosts, UNDRAIN)
    if why := started.vetoed():
        return started.end(ExitCode.ERROR, f"{why}; nothing was done")
    return started.end(*take_in(started))


def refuse_quarantined(hosts: Sequence[str], listed: Mapping[str, Quarantined]) -> None:
    """Raise RackwrightError where a host is in quarantine, such as one with a broken GPU: no clients are let in."""
    if found := [host for host in hosts if host in listed]:
        why, limits = "; ".join(f"{host} is {listed[host]}" for host in found), " --limit ".join(found)
        raise RackwrightError(
            f"{why}, so nothing was started; next: when it is repaired, rackwright quarantine INVENTORY --release "
            f"--limit {limits}, then the same command; or the other hosts by --limit",
            code="RW0836",
        )
