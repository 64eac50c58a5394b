"""`rackwright firewall`: the state of hosts' rules, and a hold while an operator works on a host's firewall."""

from __future__ import annotations

import argparse

from rackwright.cli.inventories import add_choice, add_limit, add_shared, refuse_unchosen
from rackwright.cli.lengths import add_length, seconds_of
from rackwright.concerns.firewall.kept import GUARD, SCRIPT
from rackwright.concerns.watch import PAUSED, WATCH_TIMER, repairs_file
from rackwright.hostside import host_script
from rackwright.inspect.reachability import reach_of_all
from rackwright.inspect.run_script import show, spread
from rackwright.paths import FIREWALL_OPENED
from rackwright.plan.change import Shell


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command and what it can do."""
    parser = commands.add_parser("firewall", help="how the hosts' rules stand; pause their repair")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    shown = verbs.add_parser("show", help="whether the rules stand, what was put back, and who gets in by a connection")
    add_limit(shown)
    add_shared(shown, "json")
    shown.set_defaults(handler=_show)
    pause = verbs.add_parser("pause", help="put nothing back on these hosts for a while; a reboot ends it, too")
    add_length(pause)
    resume = verbs.add_parser("resume", help="look after the rules again")
    opened = verbs.add_parser(
        "open", help="open ports that let in the gateways alone, for a while; a reboot ends it, too"
    )
    opened.add_argument("--for", dest="length", required=True, metavar="1h", help="how long: 90s, 30m, 1h; at most 24h")
    close = verbs.add_parser("close", help="close again what `open` has opened, before its time")
    for each, handler in ((pause, _pause), (resume, _resume), (opened, _open), (close, _close)):
        add_choice(each)
        each.set_defaults(handler=handler)


def _show(args: argparse.Namespace) -> int:
    return show(spread(args.inventory, args.limit, lambda _: _script("show"), args.only, reach_of_all), args.json)


def _pause(args: argparse.Namespace) -> int:
    seconds = seconds_of(args.length)
    refuse_unchosen(args)
    return show(spread(args.inventory, args.limit, lambda _: _script("pause", seconds), args.only))


def _open(args: argparse.Namespace) -> int:
    seconds = seconds_of(args.length)
    refuse_unchosen(args)
    return show(spread(args.inventory, args.limit, lambda _: _script("open", seconds), args.only))


def _close(args: argparse.Namespace) -> int:
    refuse_unchosen(args)
    return show(spread(args.inventory, args.limit, lambda _: _script("close"), args.only))


def _resume(args: argparse.Namespace) -> int:
    refuse_unchosen(args)
    return show(spread(args.inventory, args.limit, lambda _: _script("resume"), args.only))


def _script(verb: str, seconds: int = 0) -> Shell:
    """Return the script that does it on a host."""
    paths = {
        "rules": SCRIPT,
        "paused": PAUSED,
        "timer": WATCH_TIMER,
        "repairs": repairs_file(GUARD),
        "opened": FIREWALL_OPENED,
    }
    return Shell(host_script("firewall_verbs", verb=verb, seconds=seconds, **paths), timeout=60)
