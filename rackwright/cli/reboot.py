"""`rackwright reboot INVENTORY`: restart hosts in waves; each is drained, restarted and proven before the next goes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rackwright.adapter.run.session import chosen_together
from rackwright.cli.gateway_hosts import gateways_of
from rackwright.cli.inventories import add_choice, add_shared, add_timeout, refuse_unchosen
from rackwright.cli.rollout import add_waves, agreed, given
from rackwright.exit_codes import ExitCode
from rackwright.loading.files import site_root
from rackwright.loading.group import mates_of
from rackwright.loading.host import InventoryHost
from rackwright.messages import counted, printable
from rackwright.record.record import REBOOT
from rackwright.rollout.last_gateway import answering, refuse_last_gateway
from rackwright.rollout.launch import begin
from rackwright.rollout.maintenance.host_marks import drained_in, marks_of
from rackwright.rollout.maintenance.in_waves import BACK_WITHIN, restart_hosts
from rackwright.rollout.maintenance.quarantine_marks import quarantined_by
from rackwright.rollout.maintenance.start_again import doubtful_starts
from rackwright.rollout.participants import choose_participants


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("reboot", help="restart hosts in waves: drain, restart, prove, next")
    add_choice(parser)
    add_waves(parser)
    add_timeout(parser, "from its restart until it is back", BACK_WITHIN, least=30)
    parser.add_argument("--plain", action="store_true", help="print what pyinfra prints, instead of the live view")
    add_shared(parser, "yes")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Restart the chosen hosts that are in service; returns the exit status. Raises RackwrightError."""
    refuse_unchosen(args)
    entries = chosen_together(args.inventory, args.limit, args.only)
    root, path = site_root(Path(args.inventory)).absolute(), Path(args.inventory).absolute()
    marks = marks_of(entries)
    names, listed = [entry.name for entry in entries], quarantined_by(marks, root, entries)
    present = choose_participants(
        path, names, root, listed, args.skip_offline, drained=drained_in(marks), peers=mates_of(entries)
    )
    chosen = [entry for entry in entries if entry.name in present.hosts]
    refuse_without_gateway(args.inventory, chosen)
    for text in [*present.reasons, *doubtful_starts(chosen, "boot")]:
        print(f"rackwright: {printable(text)}")
    if not args.yes and not agreed(headline(chosen)):
        print("nothing was done", file=sys.stderr)
        return ExitCode.ERROR
    data = given(args)
    options = {"data": data, "skip_offline": args.skip_offline, "back_within": args.timeout}
    started = begin(args.inventory, root, entries, REBOOT, not args.plain, **options)
    started = started.with_only(present.hosts, present.events)
    if why := started.vetoed():
        return started.end(ExitCode.ERROR, f"{why}; nothing was done")
    return started.end(*restart_hosts(started, data, args.timeout))


def refuse_without_gateway(inventory: str, chosen: Sequence[InventoryHost]) -> None:
    """Raise RackwrightError when these restarts would leave clients no gateway that answers."""
    restarts = [entry.name for entry in chosen if entry.settings.is_gateway]
    if restarts:
        all_of_them = gateways_of(inventory).hosts
        refuse_last_gateway(inventory, [one.name for one in all_of_them], answering(all_of_them), restarts)


def headline(entries: Sequence[InventoryHost]) -> str:
    """Return what is going to happen, before the operator is asked for yes."""
    served = ", ".join(dict.fromkeys(name for entry in entries for name in entry.settings.all_endpoints))
    limits = ", ".join(dict.fromkeys(entry.settings.rollout.max_unavailable for entry in entries))
    number, names = counted(len(entries), "host"), ", ".join(entry.name for entry in entries)
    drained = f"{served} is drained before and proven after" if served else "each must answer before the next one goes"
    return (
        f"This restarts {number}: {names}; {drained}, and no more than {limits} of a group are down at a time."
        f"{_of_gateways(entries)}"
    )


def _of_gateways(entries: Sequence[InventoryHost]) -> str:
    """Return what clients see of it, where gateways are among the hosts."""
    gateways = [entry for entry in entries if entry.settings.is_gateway]
    if not gateways:
        return ""
    if len(gateways[0].settings.gateways) == 1:
        return f" While gateway {gateways[0].name} restarts, clients reach no model."
    return " Gateways restart one after the other; each restart ends the streams through that gateway."
