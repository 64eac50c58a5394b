"""`rackwright quarantine INVENTORY`: the hosts that rollouts leave aside; take one off the list, or put one on it."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path

from rackwright.commands.inventories import add_inventory
from rackwright.exit_codes import ExitCode
from rackwright.fleet.quarantine import List, Quarantined, change_quarantine, load_quarantine
from rackwright.loading.files import site_root
from rackwright.messages import RackwrightError
from rackwright.pyinfra_glue.inventories import refused_of
from rackwright.pyinfra_glue.session import hosts_named
from rackwright.settings.problems import nearest


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("quarantine", help="hosts that rollouts leave aside: show, release, add")
    add_inventory(parser, default=True)
    parser.add_argument("--release", action="append", default=[], metavar="HOST", help="take it off the list")
    parser.add_argument("--add", action="append", default=[], metavar="HOST", help="put it on the list")
    parser.add_argument("--why", default="by hand", metavar="TEXT", help="reason for --add")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Change the list when asked to, and print it; returns the exit status. Raises RackwrightError."""
    root = site_root(Path(args.inventory).expanduser()).absolute()
    names = [*(entry.name for entry in hosts_named(args.inventory, ())), *refused_of(args.inventory)]
    _refuse_unknown(args.add, names, f"{args.inventory} has no host")
    _refuse_unknown(args.release, list(load_quarantine(root)), "not quarantined:")
    listed = load_quarantine(root)
    if args.add or args.release:
        now = f"{datetime.now(UTC):%Y-%m-%d %H:%M}"
        listed = change_quarantine(root, lambda before: changed(before, args.release, args.add, args.why, now))
    here = {host: entry for host, entry in listed.items() if host in names}
    print("\n".join(f"{host}: {entry}{_of_run(entry)}" for host, entry in here.items()) or "no host is quarantined")
    return ExitCode.DONE


def changed(before: List, release: list[str], add: list[str], why: str, now: str) -> List:
    """The list without the released hosts, and with the added ones."""
    kept = {host: entry for host, entry in before.items() if host not in release}
    return {**kept, **{host: Quarantined(now, why) for host in add}}


def _of_run(entry: Quarantined) -> str:
    return f"; next: rackwright runs {entry.run}" if entry.run else ""


def _refuse_unknown(asked: list[str], known: list[str], text: str) -> None:
    for host in asked:
        if host not in known:
            raise RackwrightError(f"{text} {host}{nearest(host, known)}; nothing was done", code="RW1010")
