"""`rackwright drain INVENTORY --limit HOST --reason TEXT`: take hosts out of service until `undrain`."""

from __future__ import annotations

import argparse
import getpass
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from rackwright.adapter.run.inventories import refused_of
from rackwright.adapter.run.poll import Reply, poll
from rackwright.adapter.run.session import loaded_for
from rackwright.cli.inventories import add_choice, add_shared, refuse_unchosen
from rackwright.cli.rollout import agreed
from rackwright.concerns.drained import Drained
from rackwright.exit_codes import ExitCode
from rackwright.inspect.status.reading import Asked, parse
from rackwright.loading.files import site_root
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError, ReadingError
from rackwright.record.record import DRAIN
from rackwright.rollout.launch import begin
from rackwright.rollout.maintenance.capacity import HostCapacity, as_ones, heads, refuse_halves, too_many_down
from rackwright.rollout.maintenance.in_waves import take_out
from rackwright.rollout.maintenance.start_again import doubtful_starts
from rackwright.rollout.run_hosts import domains_of
from rackwright.settings.problems import some


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("drain", help="take hosts out of service: drained, stopped, skipped by later runs")
    add_choice(parser)
    add_shared(parser, "yes", "reason")
    parser.add_argument(
        "--anyway", action="store_true", help="continue although more hosts are down then than max_unavailable"
    )
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Look at the others and at what it stops, ask, drain; returns the exit status. Raises RackwrightError."""
    mark = asdict(new_mark(args.reason or "", datetime.now(UTC)))
    everybody, hosts = chosen(args)
    names = [host.name for host in hosts]
    refuse_halves(hosts, "drain")
    if not args.anyway:
        refuse_too_many(everybody, names, refused_of(args.inventory))
    for text in doubtful_starts(hosts, "drain"):
        print(f"rackwright: {text}")
    if not args.yes and not agreed(f"This drains and stops what serves on {', '.join(names)} ({args.reason})."):
        print("nothing was done", file=sys.stderr)
        return ExitCode.ERROR
    root = site_root(Path(args.inventory).expanduser()).absolute()
    started = begin(args.inventory, root, hosts, DRAIN, mark=mark)
    if why := started.vetoed():
        return started.end(ExitCode.ERROR, f"{why}; nothing was done")
    return started.end(*take_out(started, mark))


def chosen(args: argparse.Namespace) -> tuple[list[InventoryHost], list[InventoryHost]]:
    """Return all hosts and those that the command takes. Raises RackwrightError when the command names none."""
    refuse_unchosen(args)
    return loaded_for(args.inventory, args.limit, args.only)


def new_mark(reason: str, now: datetime) -> Drained:
    """Return the mark that this user leaves. Raises RackwrightError for a reason that says nothing."""
    if not reason.strip():
        raise RackwrightError("--reason is empty: say why the host is stopped; nothing was done", code="RW1030")
    return Drained(" ".join(reason.split()), f"{getpass.getuser()}@{socket.gethostname()}", f"{now:%Y-%m-%d %H:%M}")


def refuse_too_many(
    everybody: Sequence[InventoryHost], leaving: Sequence[str], refused: Mapping[str, Sequence[str]]
) -> None:
    """Raise RackwrightError when more hosts would be down than `rollout.max_unavailable` lets.

    refused: hosts whose settings are not valid, with their groups; they cannot be asked, so they count as down.
    """
    wanted = {host.name: Asked(host.settings) for host in everybody}
    replies = poll(everybody, lambda host: wanted[host.name].script)
    ones = heads(everybody)
    places = as_ones(places_of(everybody, replies), ones) | {
        name: HostCapacity(domains_of(groups, None), False, "100%") for name, groups in refused.items()
    }
    if found := too_many_down(places, {ones[name] for name in leaving}):
        found += [f"{some(list(refused))}: counted as down, since the settings are not valid"] if refused else []
        raise RackwrightError(
            "\n".join(found) + "\nnothing was done; next: take the others in first, or the same command with --anyway",
            code="RW1031",
        )


def places_of(everybody: Sequence[InventoryHost], replies: Mapping[str, Reply]) -> dict[str, HostCapacity]:
    """Return where each host counts; one that cannot be read does not serve, as far as anybody knows."""
    return {
        host.name: HostCapacity(
            domains_of(host.groups, host.settings.hardware.rack),
            _serves(replies[host.name]),
            host.settings.rollout.max_unavailable,
        )
        for host in everybody
    }


def _serves(reply: Reply) -> bool:
    try:
        return not reply.trouble and any(
            endpoint.observed.serving for endpoint in parse(reply.lines).endpoints.values()
        )
    except ReadingError:
        return False
