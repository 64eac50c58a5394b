"""`rackwright drift INVENTORY`: what changed on the hosts since the last deploy, other than by a deploy."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from rackwright.cli.inventories import add_columns, add_limit
from rackwright.concerns.gateway.concern import GATEWAY, has_common_address
from rackwright.exit_codes import ExitCode, done_if
from rackwright.inspect.common_address import sentences_of
from rackwright.inspect.drift import Drift, HostDrift, drift_of
from rackwright.inspect.read_hosts import Surveyed, survey
from rackwright.messages import counted, paragraph, printable_values
from rackwright.tables import Column, drawn, only, shown_width

COLUMNS = (Column("host"), Column("verdict"), Column("concern", 2), Column("finding", 1, 40))
_NOTES = {
    "moved": "",
    "unclear": " [or the settings or Rackwright's version changed]",
    "asked": " [the settings or Rackwright's version changed]",
}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "drift", help="what changed on hosts since the last deploy; 0 nothing, 2 something, 1 not known"
    )
    add_limit(parser)
    add_columns(parser, COLUMNS)
    parser.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Read, compare, print; the exit code says whether something moved."""
    surveyed = survey(arguments.inventory, arguments.limit, only=arguments.only)
    found = with_owners([drift_on(one) for one in surveyed], surveyed)
    if arguments.json:
        print(json.dumps(printable_values(drift_values(found)), indent=1))
    elif arguments.columns:
        print(table(found, arguments.columns, shown_width()))
    else:
        print(paragraph("\n".join(lines(found))))
    return exit_code(found)


def drift_values(hosts: Sequence[HostDrift]) -> dict[str, Any]:
    """Return the drift of all hosts for `--json`; `status` is the exit status."""
    return {
        "status": int(exit_code(hosts)),
        "summary": summed_up(hosts),
        "hosts": [asdict(host) for host in hosts],
    }


def table(hosts: Sequence[HostDrift], names: Sequence[str], width: int | None) -> str:
    """Return a row a finding, and a row a host without any. names: of the columns. width: the terminal's."""
    rows = [[paragraph(cell).replace("\n", " ") for cell in row] for host in hosts for row in _rows(host)]
    return drawn(*only(COLUMNS, rows, names), width)


def _rows(host: HostDrift) -> Iterator[tuple[str, ...]]:
    yield from ((host.host, one.verdict, one.concern, one.text) for one in host.findings)
    if not host.findings:
        yield host.host, host.state if host.state != "read" else "as left", "-", host.error or "-"


def drift_on(one: Surveyed) -> HostDrift:
    """Return the drift of one host, or why it is unknown."""
    if one.reading is None:
        return HostDrift(one.name, "unreadable" if one.reached else "unreachable", error=one.trouble)
    return drift_of(one.name, one.settings, one.reading, one.declared)


def with_owners(hosts: Sequence[HostDrift], surveyed: Sequence[Surveyed]) -> list[HostDrift]:
    """Add a finding to gateways where not exactly one of them has the common address."""
    settings = {one.name: one.settings for one in surveyed}
    has = (
        (one.name, has_common_address(one.settings, one.reading))
        for one in surveyed
        if one.reading and one.settings.is_gateway and GATEWAY.name in one.declared
    )
    wrong = sentences_of(settings, has)
    return [
        replace(host, findings=(*host.findings, Drift(GATEWAY.name, "moved", wrong[host.host])))
        if host.host in wrong and host.state == "read"
        else host
        for host in hosts
    ]


def lines(hosts: Sequence[HostDrift]) -> Iterator[str]:
    """Sentences host by host, and a last line."""
    for host in hosts:
        if host.error:
            yield f"{host.host}: {host.state}: {host.error}"
        elif host.state == "new":
            yield f"{host.host}: nothing was deployed yet"
        for finding in host.findings:
            first, *more = finding.text.splitlines()
            yield f"{host.host}: {finding.concern}: {first}{_NOTES[finding.verdict]}"
            yield from (f"  {text}" for text in more)
    yield summed_up(hosts)


def summed_up(hosts: Sequence[HostDrift]) -> str:
    """One sentence on all hosts; a host that could not be read is counted as such, and never as one that stayed."""
    moved, unread = sum(host.changed_by_itself for host in hosts), sum(bool(host.error) for host in hosts)
    unclear = sum(host.unclear for host in hosts)
    read = len(hosts) - unread
    parts = [f"{moved} of {counted(read, 'host')} moved" if moved else f"nothing moved on {counted(read, 'host')}"]
    parts += [f"on {counted(unclear, 'host')} what differs moved, or the settings changed"] if unclear else []
    return "; ".join([*parts, *([f"{unread} could not be read"] if unread else [])])


def exit_code(hosts: Sequence[HostDrift]) -> int:
    """0 nothing moved, 2 something did, 1 when nothing is known of a host, or what differs may be either."""
    if any(host.error for host in hosts):
        return ExitCode.ERROR
    if any(host.changed_by_itself for host in hosts):
        return ExitCode.PENDING
    return done_if(not any(host.unclear for host in hosts))
