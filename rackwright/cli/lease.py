"""`rackwright lease show|break INVENTORY`: which run may write to each host; end the lease of a dead run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from rackwright.adapter.command_output import tail
from rackwright.adapter.run.session import Connected, chosen_hosts, connected
from rackwright.cli.inventories import add_columns, add_limit, add_shared
from rackwright.cli.rollout import agreed
from rackwright.concerns.lease import BREAK, SeenLease, parse_seen, read_script, span, whose
from rackwright.concerns.lease.take_lease import Taken, acquire_script, ask_for
from rackwright.concerns.lease.this_process import is_gone, this_holder
from rackwright.exit_codes import ExitCode, done_if
from rackwright.inspect.read_hosts import in_parallel
from rackwright.loading.host import InventoryHost
from rackwright.messages import coded, counted, paragraph, printable
from rackwright.plan.change import Shell
from rackwright.remote.commands import command_of, remote
from rackwright.remote.errors import StepFailedError
from rackwright.tables import Column, drawn, only, shown_width

COLUMNS = (Column("host"), Column("holder", 2, 20), Column("purpose", 1, 20), Column("left", 3))
Look = SeenLease | str
"""The reading of a host's lease, or the reason for its absence."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command and what it can do."""
    parser = commands.add_parser("lease", help="which run may write to each host; end the lease of a dead run")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    shown = verbs.add_parser("show", help="show which run holds each host's lease")
    ended = verbs.add_parser("break", help="end the leases of runs that are known to be dead")
    for each, handler in ((shown, _show), (ended, _break)):
        add_limit(each)
        each.set_defaults(handler=handler)
    add_columns(shown, COLUMNS)
    add_shared(ended, "yes")


def _show(args: argparse.Namespace) -> int:
    """Show the leases; 1 when a host could not be read."""
    entries = chosen_hosts(args.inventory, args.limit, args.only)
    with connected(entries) as hosts:
        looks = _looks(entries, hosts)
    now = datetime.now().astimezone()
    if args.json:
        print(json.dumps(lease_values(looks), indent=1))
    elif args.columns:
        print(table(looks, args.columns, shown_width()))
    else:
        print(paragraph("\n".join(lease_lines(looks, now))))
    return done_if(not _unread(looks))


def _break(args: argparse.Namespace) -> int:
    """Show, ask, end the leases; 1 when a host could not be read, or a lease could not be ended."""
    entries = chosen_hosts(args.inventory, args.limit, args.only)
    with connected(entries) as hosts:
        looks = _looks(entries, hosts)
        print(paragraph("\n".join(lease_lines(looks, datetime.now().astimezone()))))
        leased = [one for one in hosts if _is_leased(looks[one.host.name])]
        if not leased:
            return done_if(not _unread(looks))
        if not args.yes and not agreed(f"This ends what {counted(len(leased), 'run')} may still write to these hosts."):
            print("nothing was done", file=sys.stderr)
            return ExitCode.ERROR
        ends = in_parallel(leased, lambda one: _end(one, looks[one.host.name]))
    for name, trouble in ends.items():
        print(f"{name}: {paragraph(trouble or 'lease ended')}", file=sys.stderr if trouble else sys.stdout)
    return done_if(not _unread(looks) and not any(ends.values()))


def _looks(entries: Sequence[InventoryHost], hosts: Sequence[Connected]) -> dict[str, Look]:
    return {entry.name: "cannot be reached" for entry in entries} | in_parallel(hosts, _read_lease)


def _unread(looks: Mapping[str, Look]) -> bool:
    return any(isinstance(look, str) for look in looks.values())


def lease_values(looks: Mapping[str, Look]) -> list[dict[str, Any]]:
    """Return the leases for `--json`, a row a host; `error` says why a host could not be read."""
    return [_values(name, look) for name, look in looks.items()]


def _values(name: str, look: Look) -> dict[str, Any]:
    if isinstance(look, str):
        return {"host": name, "error": look}
    held = look.live.holder if look.live else None
    return {"host": name, "holder": asdict(held) if held else None, "seconds_left": look.remaining if held else None}


def table(looks: Mapping[str, Look], names: Sequence[str], width: int | None) -> str:
    """Return a row a host. names: of the columns. width: the terminal's."""
    rows = [[printable(cell) for cell in (name, *_cells(look))] for name, look in looks.items()]
    return drawn(*only(COLUMNS, rows, names), width)


def _cells(look: Look) -> tuple[str, str, str]:
    if isinstance(look, str):
        return look, "?", "?"
    held = look.live.holder if look.live else None
    return (f"{held.user}@{held.machine}", held.purpose, span(look.remaining)) if held else ("-", "-", "-")


def lease_lines(looks: Mapping[str, Look], now: datetime) -> list[str]:
    """Return a line for each host that is leased, or could not be read; or one that says that no host is leased.

    now: this machine's time, with its zone.
    """
    lines = [
        f"{name}: {_sentence(look, now)}" for name, look in looks.items() if isinstance(look, str) or _is_leased(look)
    ]
    return lines or ["no host is leased"]


def _is_leased(look: Look) -> bool:
    return isinstance(look, SeenLease) and look.live is not None


def _sentence(look: Look, now: datetime) -> str:
    if isinstance(look, str):
        return look
    gone = look.live is not None and is_gone(look.live.holder)
    end = "its process on this machine has ended" if gone else f"ends in {span(look.remaining)} unless it is renewed"
    return f"{whose(look, now)}; {end}"


def _read_lease(one: Connected) -> Look:
    try:
        ok, output = remote(one.host, command_of(Shell(read_script(), timeout=30)))
    except StepFailedError as error:
        return str(error)
    return parse_seen(output.stdout_lines) if ok else coded("RW1027", f"its lease could not be read: {tail(output)}")


def _end(one: Connected, look: Look) -> str:
    """Leave a lease that has ended already, under the next number; return why that failed."""
    assert isinstance(look, SeenLease)
    assert look.lease is not None
    holder = replace(this_holder(), purpose=BREAK)
    try:
        answer = ask_for(one.host, acquire_script(look.last_number, holder, look.lease.id, ttl=0))
    except StepFailedError as error:
        return str(error)
    if isinstance(answer, Taken):
        return ""
    return coded(
        "RW1026", f"another run took it in the meantime: {whose(answer, datetime.now().astimezone())}; look again"
    )
