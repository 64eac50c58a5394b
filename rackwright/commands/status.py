"""`rackwright status INVENTORY`: what serves where, one line an endpoint."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from rackwright.commands.drift import drift_on
from rackwright.commands.inventories import add_limit
from rackwright.engines.requests import ignored_parameters
from rackwright.fleet.status import SECTION, StatusRow, rows_of, sections, unknown_row, values_of
from rackwright.fleet.status_table import render
from rackwright.fleet.survey import Surveyed, survey


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("status", help="what serves where; 1 when a host cannot be read")
    add_limit(parser)
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Read, print; 1 when nothing is known of a host."""
    hosts = survey(arguments.inventory, arguments.limit, sections, arguments.only)
    rows = [row for one in hosts for row in rows_on(one)]
    if arguments.json:
        print(json.dumps(values_of(rows), indent=1, ensure_ascii=False))
    else:
        print("\n".join([render(rows), *in_vain(hosts)]))
    return 0 if all(one.reading for one in hosts) else 1


def in_vain(hosts: Sequence[Surveyed]) -> list[str]:
    """What requests may ask for in vain, a line for each endpoint name and reason."""
    found = {
        f"endpoint {name}: requests give {', '.join(ignored.parameters)} in vain: {ignored.text}"
        for one in hosts
        for name, endpoint in one.settings.all_endpoints.items()
        for ignored in ignored_parameters(endpoint)
    }
    return sorted(found)


def rows_on(one: Surveyed) -> list[StatusRow]:
    """The rows of one host, or one that says why nothing is known."""
    if one.reading is None:
        return [unknown_row(one.name, one.trouble if one.reached else "cannot be reached")]
    return rows_of(one.name, one.settings, one.reading, one.sections[SECTION], drift_on(one))
