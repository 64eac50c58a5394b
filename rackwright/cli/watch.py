"""`rackwright watch`: what the hosts' watch has found of their engines, and a pause of its looks and acts."""

from __future__ import annotations

import argparse
import getpass
import socket

from rackwright.cli.inventories import add_choice, add_limit, add_shared, refuse_unchosen
from rackwright.cli.lengths import add_length, seconds_of
from rackwright.concerns.watch import WATCH_TIMER
from rackwright.hostside import host_script
from rackwright.inspect.run_script import show, spread
from rackwright.messages import printable
from rackwright.paths import ACTS, ENGINE_STATES, ENGINES_PAUSED, ENGINES_WATCHED
from rackwright.plan.change import Shell

LONGEST_REASON = 300


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command and what it can do."""
    parser = commands.add_parser("watch", help="what the watch of engines has found; pause its looks and acts")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    shown = verbs.add_parser("show", help="the state of each watched endpoint, its last acts, and whether it is paused")
    add_limit(shown)
    add_shared(shown, "json")
    shown.set_defaults(handler=_show)
    pause = verbs.add_parser(
        "pause", help="neither look at engines nor restart one for a while; firewall rules are still looked after"
    )
    add_length(pause)
    add_shared(pause, "reason")
    resume = verbs.add_parser("resume", help="look at engines again")
    for each, handler in ((pause, _pause), (resume, _resume)):
        add_choice(each)
        each.set_defaults(handler=handler)


def _show(args: argparse.Namespace) -> int:
    return show(spread(args.inventory, args.limit, lambda _: _script("show"), args.only), args.json)


def _pause(args: argparse.Namespace) -> int:
    seconds, reason = seconds_of(args.length), printable(" ".join((args.reason or "").split()))[:LONGEST_REASON]
    refuse_unchosen(args)
    who = f"{getpass.getuser()}@{socket.gethostname()}"
    script = _script("pause", seconds, who, reason)
    return show(spread(args.inventory, args.limit, lambda _: script, args.only))


def _resume(args: argparse.Namespace) -> int:
    refuse_unchosen(args)
    return show(spread(args.inventory, args.limit, lambda _: _script("resume"), args.only))


def _script(verb: str, seconds: int = 0, who: str = "", reason: str = "") -> Shell:
    """Return the script that does it on a host."""
    paths = {"paused": ENGINES_PAUSED, "watched": ENGINES_WATCHED, "states": ENGINE_STATES, "acts": ACTS}
    typed = {"verb": verb, "seconds": str(seconds), "who": who, "reason": reason}
    return Shell(host_script("watch_verbs", timer=WATCH_TIMER, **typed, **paths), timeout=60)
