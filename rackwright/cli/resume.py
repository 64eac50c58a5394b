"""`rackwright resume [RUN]`: do what remains of a run that was cut, or that skipped hosts."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from rackwright.adapter.run.options import given
from rackwright.adapter.run.session import hosts_named
from rackwright.cli import rollback
from rackwright.cli.inventories import add_data, add_shared, add_vault, data_of
from rackwright.cli.rollout import KEYS, agreed
from rackwright.cli.runs import add_site, all_records, root_of
from rackwright.cli.teardown import tear_down
from rackwright.exit_codes import ExitCode
from rackwright.loading.files import site_root
from rackwright.loading.group import mates_of
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError, name_inventory, printable, shortest
from rackwright.record.claim import claimed
from rackwright.record.ending import end_of_way_back
from rackwright.record.journal import append, chosen_record, folder_of, read_record
from rackwright.record.record import (
    BACKWARD,
    BY_HAND,
    DRAIN,
    DRIVERS,
    FORWARD,
    REBOOT,
    TEARDOWN,
    UNDRAIN,
    Record,
    record_of,
)
from rackwright.rollout.deploy_record import sentence
from rackwright.rollout.forward_and_back import of_all, roll_out, take_back
from rackwright.rollout.launch import Run, begin
from rackwright.rollout.maintenance.host_marks import drained_hosts
from rackwright.rollout.maintenance.in_waves import BACK_WITHIN, restart_hosts, switch_drivers, take_in, take_out
from rackwright.rollout.maintenance.interrupted_restarts import await_restarts
from rackwright.rollout.maintenance.start_again import doubtful_starts
from rackwright.rollout.participants import choose_participants
from rackwright.rollout.recovered_record import adopt
from rackwright.rollout.resumable_runs import chosen, effective, refused_runs
from rackwright.rollout.resuming import RESTARTS, Rest, advice, rest_of, unrecovered_hosts

KINDS = {
    FORWARD: "roll out",
    BACKWARD: "go further back",
    BY_HAND: "roll back",
    TEARDOWN: "tear down",
    DRAIN: "drain",
    UNDRAIN: "take into service",
    REBOOT: "restart",
    DRIVERS: "switch the driver of",
    "": "deploy",
}

ON_HOSTS_IN_SERVICE = (FORWARD, BACKWARD, BY_HAND, *RESTARTS)
"""Kinds of run that skip drained hosts."""
STOPS = {DRAIN: "drain", REBOOT: "boot", DRIVERS: "boot"}
"""Kinds of runs that stop endpoints and start none, or the same ones, and how."""
KEPT = ("deploy", "data", "plain", "to", "purge", "steps", "skip_offline", "mark", "back_within")
"""Options that hold for the rest as they were given the first time."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("resume", help="do what is left of a run; what has ended well is left alone")
    parser.add_argument("run", nargs="?", metavar="RUN", help="a run's name (default: the one that has hosts left)")
    parser.add_argument(
        "-i",
        "--inventory",
        dest="from_hosts",
        metavar="INVENTORY",
        help="resume a run without a record on this machine, from what the hosts of this inventory keep of it",
    )
    add_data(parser, "with -i: what the run had, where only hosts say so")
    add_site(parser)
    add_vault(parser)
    parser.add_argument("--plain", action="store_true", help="print what pyinfra prints, instead of the live view")
    add_shared(parser, "yes")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Resume; returns the exit status, as the run itself would have. Raises RackwrightError."""
    root = site_root(Path(args.from_hosts)) if args.from_hosts else root_of(args)
    if args.from_hosts:
        args.run = adopt(args.from_hosts, root, args.run, data_of(args), asks=not args.yes)
    path = chosen_record(root, args.run) if args.run else folder_of(root) / f"{chosen(all_records(root)).id}.jsonl"
    with claimed(path):
        # Another process that held the claim until now may have resumed it.
        old = effective(_read(path), refused_runs(all_records(root)))
        with given(typed_of(old.begin)):
            return _resume(args, root, path, old)


def typed_of(begin: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the run's own `--data`: without what its verb's options say of gate and waves."""
    data = begin.get("data", {})
    return {key: value for key, value in data.items() if key not in KEYS.values()}


def _read(path: Path) -> Record:
    return record_of(path.stem, read_record(path))


def _resume(args: argparse.Namespace, root: Path, path: Path, old: Record) -> int:
    name_inventory(shortest(old.begin["inventory"]))
    remaining, hosts = still_there(old, rest_of(old))
    names = [host.name for host in hosts]
    if remaining.kind in RESTARTS:
        restarting = [host for host in hosts if host.name in remaining.first]
        since_cut = time.time() - path.stat().st_mtime
        await_restarts(restarting, old.boots, old.begin.get("back_within", BACK_WITHIN) - since_cut)
    drained = drained_hosts(hosts) if remaining.kind in ON_HOSTS_IN_SERVICE else {}
    inventory, quorum = Path(old.begin["inventory"]), old.begin.get("skip_offline")
    present = choose_participants(inventory, names, root, {}, quorum, len(old.hosts), drained, mates_of(hosts))
    stopped = [host for host in hosts if host.name in present.hosts]
    doubts = doubtful_starts(stopped, STOPS[remaining.kind]) if remaining.kind in STOPS else []
    for text in [*_doubts(old), *present.reasons, *doubts]:
        print(f"rackwright: {printable(text)}")
    what = f"This resumes {old.id} ({old.begin['what']}): {KINDS[remaining.kind]} {', '.join(present.hosts)}."
    if not args.yes and not agreed(what):
        print("nothing was done", file=sys.stderr)
        return ExitCode.ERROR
    view = not args.plain and remaining.kind != TEARDOWN
    started = begin(old.begin["inventory"], root, hosts, old.begin["purpose"], view, **asked_again(old, remaining))
    append(path, "resumed", by=started.record.stem)
    if why := started.vetoed():
        return started.end(ExitCode.ERROR, f"{why}; nothing was done")
    return started.end(*_go_on(started.with_only(present.hosts, present.events), old, remaining))


def still_there(old: Record, remaining: Rest) -> tuple[Rest, list[InventoryHost]]:
    """Return what remains, with all hosts that serve together with one of those; and these hosts."""
    entries = hosts_named(old.begin["inventory"], remaining.hosts)
    present = {entry.name for entry in entries}
    peers = mates_of(entries)
    whole = {name for host in remaining.hosts for name in (host, *peers.get(host, ()))}
    found = [entry for entry in entries if entry.name in whole]
    if not found:
        raise RackwrightError(
            f"{old.begin['inventory']} has none of the hosts that are left: {', '.join(remaining.hosts)}", code="RW1015"
        )
    for host in remaining.hosts:
        if host not in present:
            print(f"rackwright: {host} is no longer in {old.begin['inventory']}, and is left out")
    more = [entry.name for entry in found if entry.name not in remaining.hosts]
    return replace(
        remaining,
        hosts=(*remaining.hosts, *more),
        releases={host: dict(one) for host, one in of_all(remaining.releases, peers).items()},
    ), found


def _doubts(old: Record) -> list[str]:
    unrecovered = unrecovered_hosts(old)
    found = [advice(old, unrecovered)] if unrecovered else []
    if old.lives is None:
        machine = old.begin.get("process", {}).get("machine", "another machine")
        found.append(f"whether run {old.id} is still under way cannot be seen from here: it was started on {machine}")
    return found


def asked_again(old: Record, remaining: Rest) -> dict[str, Any]:
    """Return what the new record must say, so that it can be resumed as well."""
    options = {key: old.begin[key] for key in KEPT if key in old.begin}
    back = {"back": remaining.releases} if remaining.kind in (BACKWARD, BY_HAND) else {}
    earlier = {"earlier": remaining.releases} if remaining.kind == FORWARD and remaining.releases else {}
    hosts = {
        "first": list(remaining.first),
        "hurt": [host for host in unrecovered_hosts(old) if host not in remaining.hosts],
    }
    boots = {"boots": dict(old.boots)} if remaining.kind in RESTARTS else {}
    return {
        **options,
        **back,
        **earlier,
        **boots,
        **{key: names for key, names in hosts.items() if names},
        "resumes": old.id,
    }


def _go_on(started: Run, old: Record, remaining: Rest) -> tuple[int, str]:
    data = old.begin.get("data", {})
    order = {"first": remaining.first, "last": remaining.last}
    if remaining.kind == FORWARD:
        return roll_out(started, Path(old.begin["deploy"]), data, remaining.releases, **order)
    if remaining.kind == BACKWARD:
        return _further_back(started, old, remaining)
    if remaining.kind == BY_HAND:
        return rollback.carry_out(started, remaining.releases)
    if remaining.kind in (DRAIN, UNDRAIN):
        return take_out(started, old.begin["mark"]) if remaining.kind == DRAIN else take_in(started)
    if remaining.kind in RESTARTS:
        restarts = switch_drivers if remaining.kind == DRIVERS else restart_hosts
        return restarts(started, data, old.begin.get("back_within", BACK_WITHIN), old.boots, **order)
    if remaining.kind == TEARDOWN:
        with as_file(files("rackwright.operations.deploys") / "teardown.py") as file:
            steps, opens = old.begin.get("steps"), old.begin.get("opens", ())
            return tear_down(started, file, bool(old.begin.get("purge")), steps, opens)
    deploy = Path(old.begin["deploy"])
    status = started.as_plain().pyinfra(deploy, started.hosts, data, **order)
    return status, sentence(record_of(started.record.stem, read_record(started.record)), status, executed=True)


def _further_back(started: Run, old: Record, remaining: Rest) -> tuple[int, str]:
    wanted = {host: remaining.releases[host] for host in started.hosts}
    failed = list(dict.fromkeys(failure.host for failure in old.failures.get(FORWARD, ())))
    unrecovered = [host for host in unrecovered_hosts(old) if host not in wanted]
    return end_of_way_back(wanted, take_back(started, wanted), failed, unrecovered)
