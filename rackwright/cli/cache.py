"""`rackwright cache ls|verify|repair|prune INVENTORY`: what hosts keep of models and images, and looking after it."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rackwright.adapter.run.options import data_words
from rackwright.adapter.run.session import chosen_together
from rackwright.cli.inventories import add_columns, add_limit, add_shared
from rackwright.cli.rollout import agreed
from rackwright.exit_codes import ExitCode, done_if
from rackwright.inspect.caches import COLUMNS, cache_values, caches_of, lines, table
from rackwright.inspect.host_names import hosts_text
from rackwright.inspect.prune_plan import PrunePlan, plan_of
from rackwright.loading.files import site_root
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError, paragraph, printable_values
from rackwright.processes import module
from rackwright.record.record import CACHE_PRUNE, CACHE_REPAIR, CACHE_VERIFY
from rackwright.rollout.launch import begin
from rackwright.rollout.maintenance.caches import care_for
from rackwright.tables import shown_width

NOTHING = "nothing can go: all that is Rackwright's is needed by an endpoint or a kept release"
Handler = Callable[[argparse.Namespace], int]


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command and what it can do."""
    parser = commands.add_parser("cache", help="models and images on hosts: list, verify, repair, prune")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    shown = _verb(verbs, "ls", "list what is there: bytes, for whom, when verified, whose", _list)
    add_columns(shown, COLUMNS)
    verified = _verb(verbs, "verify", "hash every file of models and encodings again; 2 when some are damaged", _verify)
    repaired = _verb(verbs, "repair", "fetch exactly the files again that are not as verified", _repair)
    pruned = _verb(verbs, "prune", "remove what no endpoint and no kept release needs, after asking", _prune)
    pruned.add_argument("--dry", action="store_true", help="show what would be removed, and remove nothing")
    for each in (verified, repaired):
        each.add_argument("--plain", action="store_true", help="print what pyinfra prints, instead of the live view")
    add_shared(pruned, "yes")


def _verb(
    verbs: argparse._SubParsersAction[argparse.ArgumentParser], name: str, what: str, handler: Handler
) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=what)
    add_limit(parser)
    parser.set_defaults(handler=handler)
    return parser


def _list(args: argparse.Namespace) -> int:
    """Print what is there; 1 when a host could not be read."""
    hosts = caches_of(args.inventory, args.limit, args.only)
    if args.json:
        print(json.dumps(printable_values(cache_values(hosts)), indent=1))
    else:
        print(table(hosts, shown_width(), args.columns))
        print(paragraph("\n".join(lines(hosts))))
    return done_if(not any(host.error for host in hosts))


def _verify(args: argparse.Namespace) -> int:
    """Hash everything again; 2 when a file is not as verified, 1 where a host was not looked at."""
    return _run(args, CACHE_VERIFY, chosen_together(args.inventory, args.limit, args.only))


def _repair(args: argparse.Namespace) -> int:
    """Fetch what is broken; 1 or 5 where that was not done."""
    return _run(args, CACHE_REPAIR, chosen_together(args.inventory, args.limit, args.only))


def _prune(args: argparse.Namespace) -> int:
    """Show what goes, ask, remove it; 1 where a host could not be read."""
    entries = chosen_together(args.inventory, args.limit, args.only)
    plan = _plan(args.inventory, [entry.name for entry in entries])
    print(paragraph("\n".join([*plan.lines(), *([] if plan.spare else [NOTHING])])))
    if not plan.spare or args.dry:
        return done_if(not plan.unread)
    if not args.yes and not agreed(f"This removes {plan.size} from {hosts_text(plan.hosts)}."):
        print("nothing was done", file=sys.stderr)
        return ExitCode.ERROR
    status = _run(args, CACHE_PRUNE, [entry for entry in entries if entry.name in plan.hosts], plan.agreed)
    return ExitCode.ERROR if plan.unread and status == ExitCode.DONE else status


def _plan(inventory: str, hosts: Sequence[str]) -> PrunePlan:
    """Return what can go, read by another process: connecting makes this one cooperative. Raises RackwrightError."""
    words = [*module("rackwright"), "cache", "ls", inventory, "--json", *data_words({})]
    words += [argument for host in hosts for argument in ("--limit", host)]
    # In a session of its own: Ctrl-C reaches this process alone, which says so once.
    done = subprocess.run(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False, start_new_session=True)
    try:
        return plan_of(json.loads(done.stdout))
    except ValueError:
        text = "the hosts could not be read, see above; nothing was done; next: rackwright cache ls INVENTORY"
        raise RackwrightError(text, code="RW1044") from None


def _run(args: argparse.Namespace, purpose: str, hosts: Sequence[InventoryHost], names: Sequence[str] = ()) -> int:
    root = site_root(Path(args.inventory).expanduser()).absolute()
    view = purpose != CACHE_PRUNE and not args.plain
    started = begin(args.inventory, root, hosts, purpose, view)
    if why := started.vetoed():
        return started.end(ExitCode.ERROR, f"{why}; nothing was done")
    return started.end(*care_for(started, purpose, names))
