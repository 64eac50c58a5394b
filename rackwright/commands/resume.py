"""`rackwright resume [RUN]`: go on with what is left of a run that was cut, or that left hosts aside."""

from __future__ import annotations

import argparse
import json
import sys
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from rackwright.commands.inventories import add_vault
from rackwright.commands.rollback import roll_back
from rackwright.commands.rollout import agreed
from rackwright.commands.runs import add_site, root_of
from rackwright.commands.teardown import tear_down
from rackwright.errors import RackwrightError
from rackwright.fleet.journal import ORDER, append, chosen_record, read_record
from rackwright.fleet.muster import muster
from rackwright.fleet.plain import sentence
from rackwright.fleet.record import BACKWARD, BY_HAND, FORWARD, TEARDOWN, WELL, Record, record_of
from rackwright.fleet.resuming import Rest, rest_of
from rackwright.fleet.rolling import roll_out, take_back
from rackwright.fleet.running import ERROR, HANDS_NEEDED, WENT_BACK, Run, begin
from rackwright.inventory import InventoryHost
from rackwright.session import chosen_hosts

KINDS = {FORWARD: "roll out", BACKWARD: "go further back", BY_HAND: "go back", TEARDOWN: "tear down", "": "deploy"}

KEPT = ("deploy", "data", "plain", "to", "purge", "skip_offline")
"""What was asked for the first time holds for the rest."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("resume", help="go on with what is left of a run; what has ended well is left alone")
    parser.add_argument("run", nargs="?", default="last", metavar="RUN", help="a run's name (default: last)")
    add_site(parser)
    add_vault(parser)
    parser.add_argument("--plain", action="store_true", help="print what pyinfra prints, instead of the live view")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Go on; returns the exit status, as the run itself would have. Raises RackwrightError."""
    root = root_of(args)
    path = chosen_record(root, args.run)
    old = record_of(path.stem, read_record(path))
    rest = rest_of(old)
    hosts = _still_there(old, rest)
    names = [host.name for host in hosts]
    present = muster(Path(old.begin["inventory"]), names, root, {}, old.begin.get("skip_offline"), len(old.hosts))
    for text in [*_doubts(old), *present.told]:
        print(f"rackwright: {text}")
    what = f"This goes on with {old.id} ({old.begin['what']}): {KINDS[rest.kind]} {', '.join(present.hosts)}."
    if not args.yes and not agreed(what):
        print("nothing was done", file=sys.stderr)
        return ERROR
    view = not args.plain and rest.kind != TEARDOWN
    started = begin(old.begin["inventory"], root, hosts, old.begin["purpose"], view, **asked_again(old, rest))
    append(path, "resumed", by=started.record.stem)
    if why := started.vetoed():
        return started.end(ERROR, f"{why}; nothing was done")
    return started.end(*_go_on(started.with_only(present.hosts, present.events), old, rest))


def _still_there(old: Record, rest: Rest) -> list[InventoryHost]:
    entries = chosen_hosts(old.begin["inventory"], ())
    known = {entry.name for entry in entries}
    found = [entry for entry in entries if entry.name in rest.hosts]
    if not found:
        raise RackwrightError(f"{old.begin['inventory']} has none of the hosts that are left: {', '.join(rest.hosts)}")
    for host in rest.hosts:
        if host not in known:
            print(f"rackwright: {host} is no longer in {old.begin['inventory']}, and is left out")
    return found


def _doubts(old: Record) -> list[str]:
    if old.lives is not None:
        return []
    machine = old.begin.get("process", {}).get("machine", "another machine")
    return [f"whether run {old.id} still goes on cannot be seen from here: it was started on {machine}"]


def asked_again(old: Record, rest: Rest) -> dict[str, Any]:
    """What the new record must say, so that it can be gone on with as well."""
    kept = {key: old.begin[key] for key in KEPT if key in old.begin}
    back = {"back": rest.releases} if rest.kind in (BACKWARD, BY_HAND) else {}
    earlier = {"earlier": rest.releases} if rest.kind == FORWARD and rest.releases else {}
    return {**kept, **back, **earlier, "resumes": old.id}


def _go_on(started: Run, old: Record, rest: Rest) -> tuple[int, str]:
    data = old.begin.get("data", {})
    order = {"first": rest.first, "last": rest.last}
    if rest.kind == FORWARD:
        return roll_out(started, Path(old.begin["deploy"]), data, rest.releases, **order)
    if rest.kind == BACKWARD:
        return _further_back(started, old, rest)
    if rest.kind == BY_HAND:
        return roll_back(started, rest.releases)
    if rest.kind == TEARDOWN:
        with as_file(files("rackwright.deploys") / "teardown.py") as file:
            return tear_down(started, file, bool(old.begin.get("purge")))
    deploy = Path(old.begin["deploy"])
    status = started.as_plain().pyinfra(deploy, started.hosts, data, **{ORDER: json.dumps(order)})
    return status, sentence(record_of(started.record.stem, read_record(started.record)), status, executed=True)


def _further_back(started: Run, old: Record, rest: Rest) -> tuple[int, str]:
    found = take_back(started, {host: rest.releases[host] for host in started.hosts})
    bad = [host for host in started.hosts if found is None or found.states.get(host) not in WELL]
    if bad:
        return HANDS_NEEDED, f"going back failed: hands needed on {', '.join(bad)}; see above"
    failed = ", ".join(dict.fromkeys(failure["host"] for failure in old.failures)) or "a host"
    return WENT_BACK, f"the change failed on {failed} and was rolled back: what served serves its last good release"
