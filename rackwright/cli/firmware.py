"""`rackwright firmware INVENTORY`: firmware and VBIOS of all hosts as a table, the odd ones marked; it only reads."""

from __future__ import annotations

import argparse
import json

from rackwright.adapter.run.poll import Reply, poll
from rackwright.adapter.run.session import chosen_hosts
from rackwright.cli.inventories import add_columns, add_limit
from rackwright.exit_codes import done_if
from rackwright.inspect.firmware import (
    COLUMNS,
    HostFirmware,
    firmware_values,
    lines,
    parse_firmware,
    script,
    table,
)
from rackwright.messages import paragraph, printable_values
from rackwright.tables import shown_width


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("firmware", help="firmware and VBIOS of all hosts, the odd ones marked")
    add_limit(parser)
    add_columns(parser, COLUMNS)
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Read, print; 1 when nothing is known of a host."""
    entries = chosen_hosts(args.inventory, args.limit, args.only)
    text = script()
    hosts = [_host(name, reply) for name, reply in poll(entries, lambda _: text).items()]
    if args.json:
        print(json.dumps(printable_values(firmware_values(hosts)), indent=1))
    else:
        print(paragraph("\n".join([table(hosts, shown_width(), args.columns), *lines(hosts)])))
    return done_if(not any(host.error for host in hosts))


def _host(name: str, reply: Reply) -> HostFirmware:
    return HostFirmware(name, error=reply.trouble) if reply.trouble else parse_firmware(name, reply.lines)
