"""`rackwright unlock INVENTORY`: show who holds the hosts' leases, and take them away."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from rackwright.commands.inventories import add_limit
from rackwright.commands.rollout import agreed
from rackwright.concerns.lease import UNLOCK, SeenLease, parse_seen, read_script, span, whose
from rackwright.effects.lease.holder import is_gone, this_holder
from rackwright.effects.lease.taking import Taken, acquire_script, ask_for
from rackwright.effects.printed import tail
from rackwright.effects.remote import StepFailedError, command_of, remote
from rackwright.exit_codes import ExitCode, done_if
from rackwright.fleet.inspect.read_hosts import in_parallel
from rackwright.messages import coded, paragraph
from rackwright.plan.change import Shell
from rackwright.pyinfra_glue.session import Connected, chosen_hosts, connected

Look = SeenLease | str
"""What was seen of a host's lease, or why nothing was."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("unlock", help="take away the leases of runs that are known to be dead")
    add_limit(parser)
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Show, ask, take away; 1 when a host could not be looked at, or a lease could not be taken away."""
    entries = chosen_hosts(arguments.inventory, arguments.limit, arguments.only)
    with connected(entries) as hosts:
        looks: dict[str, Look] = {entry.name: "cannot be reached" for entry in entries}
        looks |= in_parallel(hosts, _read_lease)
        print(paragraph("\n".join(lease_lines(looks, datetime.now().astimezone()))))
        locked = [one for one in hosts if _is_locked(looks[one.host.name])]
        whole = not any(isinstance(look, str) for look in looks.values())
        if not locked:
            return done_if(whole)
        if not arguments.yes and not agreed(f"This ends what {len(locked)} run(s) may still write to these hosts."):
            print("nothing was done", file=sys.stderr)
            return ExitCode.ERROR
        ends = in_parallel(locked, lambda one: _take_away(one, looks[one.host.name]))
    for name, trouble in ends.items():
        print(f"{name}: {paragraph(trouble or 'unlocked')}", file=sys.stderr if trouble else sys.stdout)
    return done_if(whole and not any(ends.values()))


def lease_lines(looks: Mapping[str, Look], now: datetime) -> list[str]:
    """A line for each host that is locked, or of which nothing is known; or one that says that none is.

    now: this machine's time, with its zone.
    """
    lines = [f"{name}: {_line(look, now)}" for name, look in looks.items() if isinstance(look, str) or _is_locked(look)]
    return lines or ["no host is locked"]


def _is_locked(look: Look) -> bool:
    return isinstance(look, SeenLease) and look.live is not None


def _line(look: Look, now: datetime) -> str:
    if isinstance(look, str):
        return look
    gone = look.live is not None and is_gone(look.live.holder)
    end = "its process on this machine has ended" if gone else f"ends in {span(look.left)} unless it is renewed"
    return f"{whose(look, now)}; {end}"


def _read_lease(one: Connected) -> Look:
    try:
        ok, output = remote(one.state, one.host, command_of(Shell(read_script(), timeout=30)))
    except StepFailedError as error:
        return str(error)
    return parse_seen(output.stdout_lines) if ok else coded("RW1027", f"its lease could not be read: {tail(output)}")


def _take_away(one: Connected, look: Look) -> str:
    """Leave a lease of ours that has ended, under the next number; returns why that failed."""
    assert isinstance(look, SeenLease)
    assert look.lease is not None
    holder = replace(this_holder(), purpose=UNLOCK)
    try:
        answer = ask_for(one.state, one.host, acquire_script(look.last_number, holder, look.lease.id, ttl=0))
    except StepFailedError as error:
        return str(error)
    if isinstance(answer, Taken):
        return ""
    return coded("RW1026", f"another run took it meanwhile: {whose(answer, datetime.now().astimezone())}; look again")
