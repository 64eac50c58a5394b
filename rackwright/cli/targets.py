"""`rackwright targets INVENTORY`: what a Prometheus scrapes, as its file_sd."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rackwright.cli.inventories import add_hosts, add_inventory, hosts_of
from rackwright.exit_codes import ExitCode
from rackwright.inspect.targets import NODE_EXPORTER, Targets, targets_of
from rackwright.messages import coded, writing


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("targets", help="what a Prometheus scrapes: endpoints and hosts, as file_sd")
    add_inventory(parser)
    add_hosts(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write there instead of printing")
    parser.add_argument("--node-port", type=_port, default=NODE_EXPORTER, metavar="PORT", help="port of node_exporter")
    parser.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Print or write the targets, and say which endpoints have none. Raises RackwrightError."""
    found = targets_of(hosts_of(arguments), arguments.node_port)
    for endpoint in found.without:
        print(f"rackwright: {coded('RW1045', str(endpoint))}", file=sys.stderr)
    if arguments.out:
        _write(found, arguments.out)
    else:
        print(found.text(), end="")
    return ExitCode.DONE


def _write(found: Targets, out: Path) -> None:
    """Write the file in one step: a Prometheus reads it at any moment."""
    new = out.with_name(f".{out.name}.new")
    with writing(out):
        new.write_text(found.text())
        new.replace(out)
    print(f"{out}: {len(found.groups)} targets")


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"{text} is not a port")
    return int(text)
