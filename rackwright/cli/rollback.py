"""`rackwright rollback INVENTORY`: back to the proven release before, which the hosts keep; nothing is downloaded."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rackwright.adapter.run.declaring import declared_by
from rackwright.adapter.run.session import chosen_together
from rackwright.cli.inventories import add_limit, add_shared
from rackwright.cli.rollout import agreed
from rackwright.concerns.endpoint.switch.rollback import LAST
from rackwright.exit_codes import ExitCode
from rackwright.loading.files import site_root
from rackwright.loading.host import InventoryHost
from rackwright.messages import SettingsError, counted
from rackwright.record.ending import end_of_rollback
from rackwright.record.journal import read_record
from rackwright.record.quarantine import remarks
from rackwright.record.record import BY_HAND, record_of
from rackwright.rollout.forward_and_back import Releases, roll_back
from rackwright.rollout.launch import Run, begin, phase
from rackwright.rollout.ways_back import ways_back


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("rollback", help="roll back to the proven release before, without a download")
    add_limit(parser)
    parser.add_argument(
        "--to",
        metavar="RELEASE",
        default=LAST,
        help="a release that the hosts keep (default: the one that was proven before)",
    )
    parser.add_argument("--plain", action="store_true", help="print what pyinfra prints, instead of the live view")
    add_shared(parser, "yes")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Roll back in waves under the settings' limits; returns the exit status."""
    hosts = chosen_together(args.inventory, args.limit, args.only)
    root = site_root(Path(args.inventory)).absolute()
    for text in [*remarks(root, [host.name for host in hosts]), *own_operations(root, hosts)]:
        print(f"rackwright: {text}")
    if not args.yes and not agreed(question(args.inventory, hosts, args.to)):
        print("nothing was done", file=sys.stderr)
        return ExitCode.ERROR
    started = begin(args.inventory, root, hosts, BY_HAND, not args.plain, to=args.to)
    if why := started.vetoed():
        return started.end(ExitCode.ERROR, f"{why}; nothing was done")
    return started.end(*carry_out(started, {"*": {"*": args.to}}))


def question(inventory: str, hosts: Sequence[InventoryHost], to: str) -> str:
    """Return what an operator is asked: what goes back, and to which release, as the hosts keep them."""
    wanted = "the release that was proven before" if to == LAST else f"release {to}"
    head = f"This takes {counted(len(hosts), 'host')} of {inventory} back to {wanted}:"
    return "\n  ".join([head, *ways_back(hosts, to)])


def own_operations(root: Path, hosts: Sequence[InventoryHost]) -> list[str]:
    """Return the site's own operations, which a rollback skips: a deploy.py that is broken now cannot stop it."""
    try:
        declared = declared_by(root, hosts).values()
    except SettingsError:
        return []
    names = dict.fromkeys(name for one in declared for name in one.others)
    return [f"the site's own operations are not run: {', '.join(names)}"] if names else []


def carry_out(run: Run, releases: Releases) -> tuple[int, str]:
    """Take the run's hosts back; returns the exit status and what to say. releases: as `roll_back` has them."""
    run.note("phase", name=BY_HAND)
    status = roll_back(run, releases, run.hosts)
    targets = record_of(run.record.stem, read_record(run.record)).targets
    return end_of_rollback(run.hosts, status, phase(run, BY_HAND), targets)
