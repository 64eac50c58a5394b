"""`rackwright diagnose INVENTORY --limit HOST`: let DCGM test the GPUs of hosts that serve nothing."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rackwright.adapter.run.session import chosen_hosts
from rackwright.cli.inventories import add_limit
from rackwright.exit_codes import ExitCode
from rackwright.loading.files import site_root
from rackwright.loading.host import InventoryHost
from rackwright.record.journal import read_record
from rackwright.record.record import DIAGNOSE
from rackwright.rollout.launch import begin
from rackwright.rollout.maintenance.diagnosis import diagnose_hosts, diagnoses_in, table
from rackwright.tables import shown_width

LEVELS = "1: some seconds, 2: about two minutes, 3: about fifteen; other GPUs than a data centre's: level 1 alone"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("diagnose", help="test the GPUs of drained or bare hosts by NVIDIA's DCGM")
    add_limit(parser)
    parser.add_argument("--level", type=int, choices=(1, 2, 3), default=2, help=f"depth (2). {LEVELS}")
    parser.add_argument("--plain", action="store_true", help="print what pyinfra prints, instead of the live view")
    parser.set_defaults(handler=run)


def with_gpus(hosts: Sequence[InventoryHost]) -> list[InventoryHost]:
    """Return the hosts to test: without mere gateways, unless there are no others."""
    return [host for host in hosts if not host.settings.is_gateway_alone] or list(hosts)


def run(args: argparse.Namespace) -> int:
    """Test, print a table, and put hosts with a failed GPU in quarantine; returns the exit status."""
    hosts = with_gpus(chosen_hosts(args.inventory, args.limit, args.only))
    root = site_root(Path(args.inventory).expanduser()).absolute()
    started = begin(args.inventory, root, hosts, DIAGNOSE, not args.plain, level=args.level)
    if why := started.vetoed():
        return started.end(ExitCode.ERROR, f"{why}; nothing was done")
    status, text = diagnose_hosts(started, args.level)
    if found := diagnoses_in(read_record(started.record)):
        print(table(found, shown_width()), flush=True)
    return started.end(status, text)
