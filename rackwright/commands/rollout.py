"""`rackwright rollout INVENTORY`: stage everywhere, switch in waves; a bad change stops and goes back by itself."""

from __future__ import annotations

import argparse
import json
import sys
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from rackwright.commands.inventories import add_limit
from rackwright.errors import RackwrightError
from rackwright.fleet.record import (
    AFTERWARDS,
    BACKWARD,
    FORWARD,
    NOT_REACHED,
    NOT_SWITCHED,
    NOTHING_SERVES,
    SWITCHED,
    SWITCHING,
    UNCHANGED,
    WELL,
)
from rackwright.fleet.running import DONE, ERROR, HANDS_NEEDED, WENT_BACK, Result, Run, begin, phase
from rackwright.rollback import BACK
from rackwright.session import chosen_hosts
from rackwright.settings.files import site_root

KEYS = ("wave", "bake", "max_unavailable", "error_budget", "gate")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("rollout", help="stage everywhere, then switch in waves behind the full gate")
    add_limit(parser)
    parser.add_argument("--wave", metavar="N|P%", help="hosts a wave after the canaries (default: the settings')")
    parser.add_argument("--bake", type=int, metavar="SECONDS", help="time to watch a wave before the next")
    parser.add_argument("--max-unavailable", metavar="N|P%", help="serving hosts of a group or rack that may be down")
    parser.add_argument("--error-budget", metavar="N|P%", help="hosts with a fault of their own that may be left aside")
    parser.add_argument("--gate", choices=("basic", "full"), default="full", help="what must be proven (default: full)")
    parser.add_argument("--data", action="append", default=[], metavar="KEY=VALUE", help="as pyinfra's --data")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Roll the site's settings out; returns the exit status. Raises RackwrightError."""
    hosts = [entry.name for entry in chosen_hosts(args.inventory, args.limit, args.only)]
    root = site_root(Path(args.inventory)).absolute()
    deploy = root / "deploy.py"
    if not deploy.exists():
        raise RackwrightError(f"{deploy} is not there, so there is nothing to roll out; next: rackwright init DIR")
    if not args.yes and not agreed(f"This rolls {args.inventory} out on {len(hosts)} hosts."):
        print("nothing was done", file=sys.stderr)
        return ERROR
    data = given(args)
    started = begin(args.inventory, root, hosts, "rollout", deploy=str(deploy), data=data)
    started.note("phase", name=FORWARD)
    status = started.pyinfra(deploy, hosts, data)
    forward = phase(started, FORWARD)
    backward = _go_back(started, forward) if forward.is_the_releases else None
    return started.end(*verdict(args.inventory, started.hosts, status, forward, backward))


def agreed(sentence: str) -> bool:
    """Ask before something is done to a fleet."""
    print(sentence)
    try:
        return input("Type yes to go on: ").strip() == "yes"
    except EOFError:
        return False


def given(args: argparse.Namespace) -> dict[str, Any]:
    """The settings that the command line overrides. Raises RackwrightError for a word that is no KEY=VALUE."""
    found = dict(_pair(text) for text in args.data)
    return found | {key: getattr(args, key) for key in KEYS if getattr(args, key) is not None}


def _pair(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise RackwrightError(f"--data {text}: must be KEY=VALUE; nothing was done")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def _go_back(started: Run, forward: Result) -> Result | None:
    """Bring the hosts that have switched already back, in waves under the same limits."""
    with_it = forward.named(SWITCHED, AFTERWARDS)
    switched = {host: dict(forward.before[host]) for host in with_it if forward.before.get(host)}
    if not switched:
        return None
    print(f"rackwright: the release is at fault: {', '.join(switched)} go back as well", flush=True)
    started.note("phase", name=BACKWARD)
    go_back(started, switched)
    return phase(started, BACKWARD)


def go_back(started: Run, releases: dict[str, dict[str, str]], hosts: list[str] | None = None) -> int:
    """Run the rollback on hosts; `releases`: release by endpoint by host."""
    with as_file(files("rackwright.deploys") / "rollback.py") as deploy:
        asked = {BACK: json.dumps(releases)}
        return started.pyinfra(deploy, hosts or list(releases), {"bake": 0, "wave": "100%"}, **asked)


def verdict(
    inventory: str, hosts: tuple[str, ...], status: int, forward: Result, backward: Result | None
) -> tuple[int, str]:
    """Exit status and sentence of a rollout from its record; pyinfra's own status only adds doubt."""
    missing = [
        host for host in hosts if forward.states.get(host, SWITCHING) in NOT_REACHED or host not in forward.states
    ]
    if not forward.failed and not forward.named(NOT_SWITCHED):
        if not missing and status == DONE:
            return DONE, f"done: {len(forward.named(SWITCHED))} switched, {len(forward.named(UNCHANGED))} unchanged"
        what = f"{', '.join(missing)} did not come to their switch" if missing else "not everything was done"
        return ERROR, f"{what}, see above; what served goes on serving; next: rackwright resume"
    hurt = forward.named(NOTHING_SERVES, SWITCHING)
    if backward:
        hurt += backward.not_well
    back = backward.named(*WELL) if backward else []
    hurt += [host for host in forward.named(AFTERWARDS) if host not in [*back, *hurt]]
    if hurt:
        return HANDS_NEEDED, f"hands needed on {', '.join(hurt)}: they may not serve what they served; see above"
    failed = ", ".join(forward.failed)
    if forward.is_the_releases:
        return WENT_BACK, f"the change failed on {failed} and was rolled back: what served serves its last good release"
    return WENT_BACK, (
        f"stopped and held: {failed} failed, {len(forward.named(*WELL))} hosts have the change; next: "
        f"rackwright resume to go on, or rackwright rollback {inventory} to go back"
    )
