"""`rackwright usage INVENTORY`: requests, seconds and bytes by client and model, from the gateways' access logs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping

from rackwright.cli.gateway_hosts import gateways_of
from rackwright.cli.inventories import add_columns, add_inventory
from rackwright.cli.lengths import seconds_of
from rackwright.concerns.gateway.usage import HostUsage, Pair, Usage, parse_usage, summed, usage_script
from rackwright.exit_codes import done_if
from rackwright.inspect.run_script import HostOutput
from rackwright.messages import coded, counted, printable
from rackwright.tables import Column, drawn, only, shown_width

LONGEST = 366 * 24 * 3600
MINUTE = 60
COLUMNS = (
    Column("client"),
    Column("model", 1, 20),
    Column("requests"),
    Column("refused", 4),
    Column("failed", 5),
    Column("cut", 6),
    Column("seconds", 7),
    Column("bytes in", 3),
    Column("bytes out", 2),
)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("usage", help="requests, seconds and bytes of the gateway's clients, by model")
    add_inventory(parser)
    parser.add_argument("--since", default="24h", metavar="24h", help="how far back: 90s, 30m, 24h, 7d")
    add_columns(parser, COLUMNS)
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Print the sums; 1 where a gateway could not be read, so that they lack its part."""
    seconds = seconds_of(args.since, "--since", LONGEST)
    outputs = gateways_of(args.inventory).run(usage_script(seconds))
    found = {name: parse_usage(output.out) if output.ok else None for name, output in outputs.items()}
    for text in _remarks(found, outputs):
        print(f"rackwright: {printable(text)}", file=sys.stderr)
    sums = summed(host for host in found.values() if host)
    print(_shown(sums, args))
    return done_if(all(found.values()))


def _shown(sums: Mapping[Pair, Usage], args: argparse.Namespace) -> str:
    if args.json:
        return json.dumps([_values(pair, usage) for pair, usage in sums.items()], indent=1)
    if not sums:
        return f"no request in the last {args.since}"
    return drawn(*only(COLUMNS, [_cells(pair, usage) for pair, usage in sums.items()], args.columns), shown_width())


def _values(pair: Pair, usage: Usage) -> dict[str, str | int | float]:
    return {
        "client": pair[0],
        "model": pair[1],
        "requests": usage.requests,
        "refused": usage.refused,
        "failed": usage.failed,
        "cut": usage.cut,
        "seconds": round(usage.ms / 1000, 1),
        "bytes_in": usage.bytes_in,
        "bytes_out": usage.bytes_out,
    }


def _cells(pair: Pair, usage: Usage) -> list[str]:
    return [str(value) for value in _values(pair, usage).values()]


def _remarks(found: Mapping[str, HostUsage | None], outputs: Mapping[str, HostOutput]) -> Iterator[str]:
    """Yield what the sums lack."""
    for name, host in found.items():
        if host is None:
            why = next(iter(outputs[name].err), "its answer is not complete")
            text = f"{name}: its access log was not read, and the sums lack its part: {why}; next: the same command"
            yield coded("RW1076", text)
        elif host.unread:
            yield f"{name}: {counted(host.unread, 'row')} of its log left out: no row of an access log"
        if host and host.lacks > MINUTE:
            yield f"{name}: its journal begins {host.lacks // MINUTE} min later than asked for, and the sums with it"
