"""`rackwright quarantine INVENTORY`: show the hosts that rollouts skip, add some, release some."""

from __future__ import annotations

import argparse
import getpass
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from rackwright.adapter.run.inventories import refused_of
from rackwright.adapter.run.session import chosen_hosts, hosts_named
from rackwright.cli.inventories import add_choice, add_columns, add_shared, refuse_unchosen
from rackwright.exit_codes import ExitCode
from rackwright.loading.choice import Choice, is_matched
from rackwright.loading.files import site_root
from rackwright.messages import RackwrightError, coded, printable, printable_values
from rackwright.notify.message import Message, quarantine_message, release_message
from rackwright.notify.send import notify
from rackwright.notify.targets import targets
from rackwright.record.quarantine import List, Quarantined, change_quarantine, load_quarantine
from rackwright.record.selection import named_by
from rackwright.rollout.maintenance.quarantine_marks import quarantined_hosts
from rackwright.tables import Column, drawn, only, shown_width
from rackwright_engines.nearest import nearest

COLUMNS = (Column("host"), Column("since", 3), Column("why", 1, 20), Column("run", 2))


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("quarantine", help="hosts that rollouts skip: show, add, release")
    add_choice(parser)
    add_columns(parser, COLUMNS)
    change = parser.add_mutually_exclusive_group()
    change.add_argument("--add", action="store_true", help="put the hosts on the list")
    change.add_argument("--release", action="store_true", help="take the hosts off the list")
    add_shared(parser, "reason")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Change the list when asked to, and print it; returns the exit status. Raises RackwrightError."""
    root = site_root(Path(args.inventory).expanduser()).absolute()
    groups = {entry.name: entry.groups for entry in hosts_named(args.inventory, ())}
    groups |= refused_of(args.inventory)
    message, names = None, list[str]()
    if args.add:
        names, now = _named(groups, args, root), f"{datetime.now(UTC):%Y-%m-%d %H:%M}"
        reason = args.reason or "by hand"
        change_quarantine(root, lambda before: added(before, names, reason, now))
        message = quarantine_message(names, args.inventory, getpass.getuser(), reason)
    elif args.release:
        names = _named({host: groups.get(host, ()) for host in _on_hosts(args, root)}, args, root)
        change_quarantine(root, lambda before: {host: entry for host, entry in before.items() if host not in names})
        message = release_message(names, args.inventory, getpass.getuser())
    here = {host: entry for host, entry in _on_hosts(args, root).items() if host in groups}
    print(_shown(here, args), flush=True)
    if message:
        _notify(message, args.inventory, names)
    return ExitCode.DONE


def _notify(message: Message, inventory: str, names: Sequence[str]) -> None:
    """Send the change by hand to those whom the hosts' settings name; the settings of some hosts may be invalid."""
    with suppress(RackwrightError):
        notify(message, targets(entry.settings for entry in chosen_hosts(inventory, names)))


def _on_hosts(args: argparse.Namespace, root: Path) -> List:
    """Return the list by the hosts' own marks; without valid settings no host can be asked, and it is the site's."""
    try:
        entries = chosen_hosts(args.inventory, () if args.add or args.release else args.limit)
    except RackwrightError as error:
        print(coded("RW0871", f"the hosts' own marks were not read: {error}"), file=sys.stderr)
        return load_quarantine(root)
    return quarantined_hosts(root, entries)


def _shown(listed: List, args: argparse.Namespace) -> str:
    """Return the list as the command line asks for it."""
    if args.json:
        rows = [{"host": host, **asdict(entry)} for host, entry in listed.items()]
        return json.dumps(printable_values(rows), indent=1)
    if args.columns:
        cells = [(host, entry.since, printable(entry.why), entry.run or "-") for host, entry in listed.items()]
        return drawn(*only(COLUMNS, cells, args.columns), shown_width())
    return "\n".join(f"{host}: {entry}{_of_run(entry)}" for host, entry in listed.items()) or "no host is quarantined"


def added(before: List, hosts: Sequence[str], reason: str, now: str) -> List:
    """Return the list with these hosts on it."""
    return {**before, **{host: Quarantined(now, reason) for host in hosts}}


def _named(groups: Mapping[str, Sequence[str]], args: argparse.Namespace, root: Path) -> list[str]:
    """Return the hosts of the list that the command names. Raises RackwrightError for a name that is not there.

    groups: by host, its groups.
    """
    refuse_unchosen(args)
    for pattern in args.limit:
        if not any(is_matched(host, of, pattern) for host, of in groups.items()):
            list_ = "quarantined" if args.release else f"in {args.inventory}"
            raise RackwrightError(f"not {list_}: {pattern}{nearest(pattern, groups)}; nothing was done", code="RW1010")
    choice = Choice(args.limit, {host for text in args.only for host in named_by(root, text)} if args.only else None)
    return [host for host, of in groups.items() if choice.takes(host, of)]


def _of_run(entry: Quarantined) -> str:
    return f"; next: rackwright runs {entry.run}" if entry.run else ""
